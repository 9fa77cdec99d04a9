"""``specwb record``: an engine's bus into a file."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from probes.control import ControlClient
from probes.discovery import EngineRecord
from probes.events import TOPICS
from workbench.cli.candidates import engines
from workbench.cli.connect import engine_named, probe_errors
from workbench.cli.duration import Duration
from workbench.console import fail, print_line, say
from workbench.exit_codes import ExitCode
from workbench.live_line import LiveLine
from workbench.recording.file_size import size_text

if TYPE_CHECKING:
    from workbench.recording.recorder import Recorder, RecorderStatus

    TopicsType = click.ParamType[tuple[str, ...]]
else:
    TopicsType = click.ParamType

CONNECT_S = 6.0
LOOK_S = 0.25
LONGEST_S = 30 * 86_400


class TopicList(TopicsType):
    """Topics of the bus with commas between them, or ``all``."""

    name = "topics"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = [name.strip() for name in str(value).split(",") if name.strip()]
        for name in names:
            if name not in (*TOPICS, "all"):
                self.fail(f"there is no topic {name!r}; there are {', '.join(TOPICS)}, and all", param, ctx)
        if not names:
            self.fail(f"name at least one of {', '.join(TOPICS)}, or all", param, ctx)
        return tuple(TOPICS) if "all" in names else tuple(names)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that Ctrl-C, SIGTERM and SIGHUP set: each ends the recording in order."""
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def amount_text(status: RecorderStatus) -> str:
    """``1234 events  1.5 MB  lost 0``."""
    return f"{status.events} events  {size_text(status.bytes)}  lost {status.lost}"


def output_path(given: str | None, engine: str) -> Path:
    """Where to record: the file that was named, or a new one in the folder that was named, or in this one.

    Raises:
        RecordingError: a folder was named that is not there.
    """
    from workbench.recording.file_names import free_path
    from workbench.recording.recording_error import RecordingError

    path = Path(given or ".")
    if os.path.isdir(path):
        return free_path(engine, path, time.time())
    if given and given.endswith("/"):
        raise RecordingError(f"there is no folder {given}; make it first, or name a file")
    return path


def require_tokens(record: EngineRecord) -> None:
    """Make sure that the engine tells what its requests are.

    Raises:
        CommandError: it does not, or does not answer.
    """
    with probe_errors(), ControlClient(record, timeout=CONNECT_S) as client:
        hello = client.hello()
    if not hello.config.get("publish_tokens"):
        fail(
            ExitCode.REFUSED,
            f"--with-requests: {record.name} keeps token ids to itself, so a recording could not be run again; start "
            "it with `specwb serve --publish-tokens` (prompts and answers are then on its bus and in the file)",
        )


def wait(recorder: Recorder, record: EngineRecord, seconds: float | None, stop: threading.Event) -> None:
    """Until it is to end, or has ended by itself.

    Raises:
        CommandError: the engine does not answer at all; nothing is left behind.
    """
    line, is_gone, began = LiveLine(sys.stderr), False, time.monotonic()
    while not stop.wait(LOOK_S):
        status, now = recorder.status, time.monotonic()
        if not status.is_recording:
            break
        if not status.is_connected:
            if now - began > CONNECT_S:
                recorder.stop()
                fail(ExitCode.UNREACHABLE, f"{record.name} does not answer; nothing was recorded (see `specwb ls`)")
            continue
        if seconds is not None and status.seconds >= seconds:
            break
        if not record.is_live and not is_gone:
            is_gone = True
            line.clear()
            say(f"process {record.pid} of {record.name} has ended; recording goes on if it comes back")
        line.show(f"recording {record.name}  {status.seconds:.0f} s  {amount_text(status)}  Ctrl-C ends it")
    line.clear()


@click.command("record")
@click.argument("name", required=False, shell_complete=engines)
@click.option("-o", "--output", help="File, or folder.  [default: NAME-DATE-TIME.mcap here]")
@click.option("--for", "seconds", type=Duration(LONGEST_S), help="End after so long, as 90s or 10m.")
@click.option(
    "--topics",
    type=TopicList(),
    help="Only these, as step,rows, or all; hello, knob and alert always.  [default: all but rows]",
)
@click.option(
    "--with-requests",
    is_flag=True,
    help="Prompts and answers too, as token ids, for `replay --live`; needs an engine with --publish-tokens.",
)
@click.option("--note", default="", help="Words to keep in the recording.")
def command(
    name: str | None,
    output: str | None,
    seconds: float | None,
    topics: tuple[str, ...] | None,
    with_requests: bool,
    note: str,
) -> int:
    """Record an engine's events into an MCAP file, to replay, check or export it later. Ctrl-C ends it in order.

    The path is printed on stdout at the end. Exit code 1: events were lost, or the disk was full; the words say how
    many, and where what there is can be found.

    \b
    Example:
      specwb record demo --for 10m -o load.mcap
      specwb record demo --topics all --note night-run
      specwb record demo --with-requests -o again.mcap
    """
    record = engine_named(name)
    if with_requests:
        require_tokens(record)
    from workbench.recording.channels import DEFAULT_TOPICS
    from workbench.recording.part_file import part_of
    from workbench.recording.recorder import Recorder
    from workbench.recording.recording_error import RecordingError

    with stopped_by_signals() as stop:
        try:
            path = output_path(output, record.name)
            recorder = Recorder(record, path, topics or DEFAULT_TOPICS, note=note, with_requests=with_requests)
            recorder.start()
        except RecordingError as error:
            fail(ExitCode.USAGE, str(error))
        say(f"recording {record.name} to {path}" + ("" if seconds is None else f" for {seconds:g} s"))
        wait(recorder, record, seconds, stop)
        status = recorder.stop()
    if status.error:
        if status.is_connected and part_of(path).exists():
            print_line(str(part_of(path)))
        fail(ExitCode.FALSE, status.error)
    say(f"recorded {status.seconds:.1f} s  {amount_text(status)}")
    print_line(str(path))
    if status.lost:
        fail(ExitCode.FALSE, f"{status.lost} events were lost before they reached the recording; its gaps say which")
    return ExitCode.OK
