"""How every command speaks: data on stdout, narration on stderr, and an exit code when it cannot go on."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

import click
import msgspec

from workbench.cell_text import Align, clean, fit, width_of
from workbench.exit_codes import ExitCode


def prepare_streams() -> None:
    """Make stdout and stderr fit for whatever is said: closed ones swallow it, and of a character that the encoding of
    stdout does not have a question mark is left. Neither may end a command that has done its work already."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


class CommandError(click.ClickException):
    """Ends a command with one message on stderr and a code of its own."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code

    def show(self, file: Any = None) -> None:
        say(self.message)


def fail(code: ExitCode, message: str) -> NoReturn:
    """End the command.

    Raises:
        CommandError: always.
    """
    raise CommandError(code, message)


def say(message: str) -> None:
    """Narration, for the person who watches: stderr."""
    for line in folded(f"specwb: {message}", columns_of(sys.stderr)):
        click.echo(line, err=True)


def columns_of(stream: TextIO) -> int | None:
    """Columns of the terminal behind a stream; None where there is none."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


class Command(str):
    """A line to be pasted into a shell: it is never folded, however long."""

    __slots__ = ()


_COMMAND_IN_PROSE = re.compile(r"`[^`\n]+`")
_BLANK_INSIDE = "\ue000"
"""Stands for a blank that no line is broken at."""


def folded(text: str, columns: int | None, indent: int = 2) -> list[str]:
    """Clean lines broken between words for a terminal, the later ones indented; whole for a pipe (``columns`` None).

    A command stays in one piece: a ``Command``, and within prose what stands between backticks.
    """
    lines = [clean(line) for line in text.splitlines()] or [""]
    if columns is None or isinstance(text, Command):
        return lines
    lines = [_COMMAND_IN_PROSE.sub(lambda found: found[0].replace(" ", _BLANK_INSIDE), line) for line in lines]
    folds = [
        textwrap.wrap(
            line,
            columns,
            subsequent_indent=" " * indent,
            break_on_hyphens=False,
            break_long_words=False,  # an address or a path stays in one piece, to be copied
            replace_whitespace=False,
        )
        for line in lines
    ]
    return [part.replace(_BLANK_INSIDE, " ") for fold in folds for part in fold or [""]]


class ReaderLeft(Exception):
    """The reader of our stdout has closed it. Its own class, so that nobody on the way takes it for another OSError."""


def print_line(text: str) -> None:
    """One line of data, flushed at once so that a reader of a pipe sees it now.

    Raises:
        ReaderLeft: nobody reads any more.
        CommandError: it cannot be written, to a full disk for example.
    """
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderLeft from None
    except OSError as error:
        drop_stdout()
        fail(ExitCode.FALSE, f"the output cannot be written: {error.strerror}")


def print_json(value: Any) -> None:
    """One JSON object a line, flushed at once."""
    print_line(msgspec.json.encode(value, enc_hook=str).decode())


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> None:
    """Rows under a header, columns aligned by terminal cells; columns named in ``right`` are right-aligned."""
    for line in table_lines(header, rows, right, columns_of(sys.stdout)):
        print_line(line)


def table_lines(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: frozenset[int] = frozenset(),
    columns: int | None = None,
) -> list[str]:
    """The lines of a table. On a terminal that is too narrow the gaps shrink, and then the last column, if it is text,
    stands below its row."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(width_of(line[column]) for line in lines) for column in range(len(header))]
    gap = 2 if columns is None or sum(widths) + 2 * (len(widths) - 1) <= columns else 1
    is_low = columns is not None and sum(widths) + len(widths) - 1 > columns and len(widths) - 1 not in right
    beside = widths[:-1] if is_low else widths
    made: list[str] = []
    for line in lines:
        aligned: list[tuple[str, int, Align]] = [
            (cell, width, "right" if column in right else "left")
            for column, (cell, width) in enumerate(zip(line, beside, strict=False))
        ]
        made.append((" " * gap).join(fit(*cell) for cell in aligned).rstrip())
        if is_low:
            made += folded(f"    {line[-1]}", columns, indent=4)
    return made


def drop_stdout() -> None:
    """When it cannot be written to: point stdout at nowhere, so that the interpreter's last flush is quiet."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
