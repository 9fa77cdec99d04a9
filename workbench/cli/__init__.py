"""The ``specwb`` command. Each verb is a file of its own, imported only when it is the one to run."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from workbench.exit_codes import MEANINGS, ExitCode

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# verb -> what --help says about it; the module of the verb has the command under the same name.
VERBS: dict[str, str] = {
    "serve": "Start an engine and serve it over HTTP.",
    "ls": "List the running engines.",
    "which": "Say what really runs in an engine, and why.",
    "tail": "Print an engine's events as they happen.",
    "get": "Print the knobs in force.",
    "set": "Change knobs of a running engine.",
    "attach": "Watch and steer an engine on one screen.",
    "record": "Record an engine's events into a file.",
    "recordings": "Look at recordings; check, repair, export them.",
    "replay": "Play a recording on the same screen.",
    "check": "Hold an engine or a recording to what is expected of it.",
    "bench": "Load an endpoint over HTTP and measure it, with speculation off, on and auto.",
    "audit": "Compare a client's own tokens with bus, recording and screen.",
    "models": "List the built-in models; fetch them.",
    "demo": "Start an engine, load it, and compare speculation off, on and auto.",
    "completion": "Print the script for completion in bash, zsh or fish.",
}

EPILOG = (
    "Grammar: specwb VERB [NAME|FILE] [knob=value ...] [options]. NAME may be left out while one engine runs.\n\n"
    "Exit codes: " + "; ".join(f"{int(code)} {meaning}" for code, meaning in MEANINGS.items()) + "."
)


class LazyGroup(click.Group):
    """A group that knows its verbs' names and one-line helps, and imports a verb when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = getattr(importlib.import_module(f"workbench.cli.{cmd_name}"), "command")  # noqa: B009
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"no verb {args[0]!r}; the verbs are {', '.join(VERBS)}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Verbs and options; the group of click's own would import every verb for its help."""
        from workbench.cli.candidates import items

        return items(VERBS.items(), incomplete) + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="specwb", prog_name="specwb")
def specwb() -> None:
    """Watch, steer and serve engines with speculative decoding.

    \b
    Example:
      specwb serve --name demo &
      specwb attach demo
      specwb set demo threshold=2 --why "load test"
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (an ``ExitCode``, or what ``serve``'s server exited with)."""
    from workbench.console import CommandError, ReaderLeft, drop_stdout, prepare_streams

    try:
        prepare_streams()
        result = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
        return result
    except CommandError as error:
        error.show()
        return error.code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, ReaderLeft):
        drop_stdout()
        return ExitCode.BROKEN_PIPE
    except Exception as error:  # the last resort: a traceback, and the code that says "our bug"
        import traceback

        traceback.print_exc()
        click.echo(f"specwb: this is a bug in specwb: {type(error).__name__}: {error}", err=True)
        return ExitCode.INTERNAL


def _run(words: Sequence[str]) -> int:
    """What click's own ``main`` does, but for its way with errors: it exits with 1 for a reader that has left."""
    instruction = os.environ.get("_SPECWB_COMPLETE")
    if instruction:
        from workbench.cli.shell_words import answer

        return answer(specwb, instruction)
    _check_words(words)
    try:
        with specwb.make_context("specwb", list(words)) as context:
            result = specwb.invoke(context)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    return result if isinstance(result, int) else ExitCode.OK


def _check_words(words: Sequence[str]) -> None:
    """Refuse words that are no UTF-8: they could be neither sent nor printed.

    Raises:
        click.UsageError: naming the word.
    """
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"{word!a} is not valid UTF-8") from None
