"""``specwb demo``: start an engine, load it, and compare speculation off, on and by policy."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from workbench.cli.candidates import drafts, models
from workbench.cli.engine_program import require_engine
from workbench.cli.full_screen import require_terminal
from workbench.console import CommandError, columns_of, folded, print_json, print_line
from workbench.exit_codes import ExitCode


@contextmanager
def ending_in_order() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind like Ctrl-C does, so that the engine is ended too; exit code 143 or 129."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(int(ExitCode.HUNG_UP if number == signal.SIGHUP else ExitCode.TERMINATED))

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def has_screen() -> bool:
    """Whether a screen can be drawn where the demo runs."""
    try:
        require_terminal("demo", "")
    except CommandError:
        return False
    return True


def serve_options(model: str | None, draft_model: str | None, dtype: str | None, threads: int | None) -> list[str]:
    """Words for ``specwb serve``: only what was given."""
    given = {"--model": model, "--draft-model": draft_model, "--dtype": dtype, "--threads": threads}
    return [word for option, value in given.items() if value is not None for word in (option, str(value))]


@click.command("demo")
@click.option(
    "--model",
    shell_complete=models,
    help="A directory in Hugging Face layout, or a built-in name.  [default: smollm2-135m]",
)
@click.option(
    "--draft-model", shell_complete=drafts, help="An EAGLE-3 head: directory, built-in name or auto.  [default: auto]"
)
@click.option("--dtype", type=click.Choice(["auto", "bfloat16", "float16", "float32", "float64"]), help="Precision.")
@click.option("--threads", type=click.IntRange(min=0), help="Threads of the model's arithmetic; 0 takes all cores.")
@click.option("--tokens", type=click.IntRange(8, 1024), default=48, show_default=True, help="Tokens an answer.")
@click.option("--keep", is_flag=True, help="Leave the engine running at the end.")
@click.option("--no-tui", is_flag=True, help="Lines instead of the screen, on a terminal too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout at the end; the rest goes to stderr.")
def command(
    model: str | None,
    draft_model: str | None,
    dtype: str | None,
    threads: int | None,
    tokens: int,
    keep: bool,
    no_tui: bool,
    as_json: bool,
) -> int:
    """Start an engine of its own, ramp clients up and down through the threshold with speculation off, on and auto,
    and compare: pace, accept length, switches, slots, and whether the outputs are identical.

    On a terminal you watch it on the screen of `attach`, while it is recorded; q ends it at any time, and prints what
    has been found out. Elsewhere, and with --no-tui or --json, it goes on line by line.

    Exit code 1: outputs differ beyond near-ties, or slots were lost.

    \b
    Example:
      specwb demo
      specwb demo --dtype float32 --tokens 96 --json
    """
    if draft_model == "none":
        raise click.UsageError("--draft-model none leaves nothing to compare; give a head, or leave it out")
    require_engine()
    from workbench.demo.outcome_table import outcome_lines

    out = sys.stderr if as_json else sys.stdout
    columns = columns_of(out)

    def say(text: str) -> None:
        for line in folded(text, columns):
            click.echo(line, file=out) if as_json else print_line(line)

    options = serve_options(model, draft_model, dtype, threads)
    with ending_in_order():
        if no_tui or as_json or not has_screen():
            from workbench.demo.session import demonstrate

            outcome = demonstrate(options, tokens, say, keep=keep, columns=columns)
        else:
            from workbench.demo.screen_session import demonstrate_on_screen

            found, code = demonstrate_on_screen(options, tokens, say, keep=keep)
            if code:
                say("interrupted")
                return code
            if found is None:
                say("ended before anything was found out")
                return ExitCode.OK
            outcome = found
    for line in outcome_lines(outcome, columns):
        say(line)
    if as_json:
        print_json(outcome.as_json())
    return outcome.exit_code
