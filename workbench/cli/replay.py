"""``specwb replay``: a recording on the screens of a live engine, without an engine; or its requests on one again."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from workbench.cli.candidates import drafts, models, recordings
from workbench.cli.engine_program import require_engine, run_engine_program
from workbench.cli.full_screen import require_terminal
from workbench.cli.serve import config_file
from workbench.cli.shipped import recording_path
from workbench.console import fail, say
from workbench.exit_codes import ExitCode

if TYPE_CHECKING:
    _SpeedType = click.ParamType[float]
    _SizeType = click.ParamType[tuple[int, int]]
else:
    _SpeedType = _SizeType = click.ParamType

SLOWEST, FASTEST = 0.1, 64.0
LEAST_SIZE, MOST_SIZE = (40, 12), (500, 200)


class Speed(_SpeedType):
    """0.1 to 64, or ``max``."""

    name = "speed"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if value == "max" or value == math.inf:
            return math.inf
        try:
            speed = float(str(value).removesuffix("x"))
        except ValueError:
            speed = math.nan
        if not SLOWEST <= speed <= FASTEST:
            self.fail(f"{value!r} is no speed; expected {SLOWEST:g} to {FASTEST:g}, or max", param, ctx)
        return speed


class Size(_SizeType):
    """Columns × rows, as in ``120x40``."""

    name = "columns x rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        match = re.fullmatch(r"(\d+)[x×](\d+)", str(value))
        size = (int(match[1]), int(match[2])) if match else (0, 0)
        if not all(least <= cells <= most for least, cells, most in zip(LEAST_SIZE, size, MOST_SIZE, strict=True)):
            least, most = ("x".join(map(str, limit)) for limit in (LEAST_SIZE, MOST_SIZE))
            self.fail(f"{value!r} is no size; expected columns x rows, {least} to {most}, as in 120x40", param, ctx)
        return size


def picture_path(value: str | None) -> Path | None:
    """Where the picture goes.

    Raises:
        click.UsageError: the name says no format, or its folder is not there.
    """
    if value is None:
        return None
    path = Path(value)
    if path.suffix not in (".svg", ".txt"):
        raise click.UsageError(f"--screenshot {value} says no format; give a name that ends in .svg or .txt")
    if not os.path.isdir(path.absolute().parent):
        raise click.UsageError(f"--screenshot {value}: there is no folder {path.parent}")
    return path


@click.command("replay")
@click.argument("file", shell_complete=recordings)
@click.option("--at", help="Begin there: 12s, 1m30s, 50%, HH:MM:SS, step:1234, switch:2, bookmark:NAME, start, end.")
@click.option("--speed", type=Speed(), default=1.0, help="Seconds of the recording in a second: 0.1 to 64, or max.")
@click.option("--paused", is_flag=True, help="Stand still until p is pressed.")
@click.option("--screen", help="The screen to begin with: overview, steps, …")
@click.option("--screenshot", "picture", metavar="FILE", help="Draw the screen into a .svg or .txt file, and end.")
@click.option("--size", type=Size(), default=(120, 40), show_default="120x40", help="Of the screenshot.")
@click.option("--live", is_flag=True, help="Run its requests again on an engine, and compare the tokens.")
@click.option("--model", shell_complete=models, help="With --live: where the recorded model lies here.")
@click.option("--draft-model", shell_complete=drafts, help="With --live: where the recorded head lies here.")
@click.option("--json", "as_json", is_flag=True, help="With --live: one JSON object.")
def command(
    file: str,
    at: str | None,
    speed: float,
    paused: bool,
    screen: str | None,
    picture: str | None,
    size: tuple[int, int],
    live: bool,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
) -> int:
    """Play a recording on the screens of a live engine. Needs no engine; changes nothing in the recording. FILE is one
    that `specwb record` made, finished or not, or the name of one that ships with specwb.

    Press ? for the player's keys: pause, step both ways, speed, go to a place, next switch, bookmarks. Bookmarks are
    kept beside the recording. With --screenshot the screen is drawn without a terminal, where --at says, else at
    the end.

    With --live nothing is drawn: a recording that `record --with-requests` made is run again. The same engine is built
    here, gets the same requests and knob changes before the same steps, and its tokens are compared with the recorded
    ones. Exit code 1: they differ, and the first difference is named; 2: there is nothing in it to run again.

    \b
    Example:
      specwb replay load.mcap
      specwb replay load.mcap --at switch:1 --paused
      specwb replay load.mcap --at 12s --screen steps --screenshot x.svg
      specwb replay again.mcap --live
    """
    if live:
        if at is not None or paused or screen is not None or picture is not None or speed != 1.0:
            raise click.UsageError("--live draws nothing; leave out --at, --speed, --paused, --screen and --screenshot")
        run_again(file, model, draft_model, as_json)
    if model is not None or draft_model is not None or as_json:
        raise click.UsageError("--model, --draft-model and --json are for --live")
    path = picture_path(picture)
    if path is None:
        require_terminal("replay", "use `--screenshot x.svg` or `x.txt` to draw a screen without one")
    from workbench.recording.reader import Recording
    from workbench.recording.recording_error import RecordingError
    from workbench.replay.place import PlaceError
    from workbench.replay.player import Player

    try:
        source = recording_path(file)
        recording = Recording.open(source)
    except RecordingError as error:
        fail(ExitCode.USAGE, str(error))
    with recording:
        player = Player(recording, source, speed=speed)
        try:
            if at is not None or path is not None:
                player.seek(at if at is not None else "end")
        except PlaceError as error:
            fail(ExitCode.USAGE, f"--at: {error}")
        if paused or path is not None:
            player.clock.pause()
        return show(player, screen, path, size)


def run_again(file: str, model: str | None, draft_model: str | None, as_json: bool) -> NoReturn:
    """Become the program that runs the recording's session again.

    Raises:
        CommandError: there is nothing in it to run, or no engine is installed.
    """
    require_engine()
    import msgspec

    from workbench.recording.reader import Recording
    from workbench.recording.recording_error import RecordingError
    from workbench.replay.session_scripts import session_script

    try:
        with Recording.open(recording_path(file)) as recording:
            script = session_script(recording, file)
    except RecordingError as error:
        fail(ExitCode.USAGE, str(error))
    words = ["--script", config_file(msgspec.to_builtins(script))]
    for option, value in (("--model", model), ("--draft-model", draft_model)):
        words += [option, value] if value is not None else []
    run_engine_program("engine.rerun_program", [*words, "--json"] if as_json else words)


def show(player: Any, screen: str | None, path: Path | None, size: tuple[int, int]) -> int:
    """On this terminal, or into the file.

    Raises:
        CommandError: an unknown screen, a file that cannot be written, a bug.
    """
    from workbench.replay.replay_app import ReplayApp, UnknownScreen

    try:
        app = ReplayApp(player, screen)
    except UnknownScreen as error:
        fail(ExitCode.USAGE, f"--screen: {error}")
    if path is not None:
        from workbench.replay.screenshot import ScreenshotError, take_screenshot

        try:
            take_screenshot(app, path, size)
        except ScreenshotError as error:
            fail(ExitCode.INTERNAL if app.crash else ExitCode.FALSE, str(error))
        say(f"the screen is in {path}")
        if player.missing:
            say(f"{player.file_name}: {player.missing}")
        return ExitCode.OK
    from workbench.tui.crash_report import describe, write_report
    from workbench.tui.screen import ScreenCrash, run_screen

    try:
        return run_screen(app)
    except ScreenCrash as crash:
        cause = crash.__cause__ or crash
        fail(ExitCode.INTERNAL, describe(cause, write_report(cause)))
