"""How every command speaks: data on stdout, narration on stderr, and an exit code when it cannot go on."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

import click
import msgspec

from workbench.cell_text import Align, fit, width_of
from workbench.exit_codes import ExitCode


class CommandError(click.ClickException):
    """Ends a command with one message on stderr and a code of its own."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        self.code = code

    def show(self, file: Any = None) -> None:
        click.echo(f"specwb: {self.message}", err=True)


def fail(code: ExitCode, message: str) -> NoReturn:
    """End the command.

    Raises:
        CommandError: always.
    """
    raise CommandError(code, message)


def say(message: str) -> None:
    """Narration, for the person who watches: stderr."""
    click.echo(f"specwb: {message}", err=True)


def folded(text: str, columns: int | None) -> list[str]:
    """Lines broken between words for a terminal; whole for a pipe (``columns`` None)."""
    lines = text.splitlines() or [""]
    if columns is None:
        return lines
    folds = [
        textwrap.wrap(line, columns, subsequent_indent="  ", break_on_hyphens=False, replace_whitespace=False)
        for line in lines
    ]
    return [part for fold in folds for part in fold or [""]]


class ReaderLeft(Exception):
    """The reader of our stdout has closed it. Its own class, because click answers a BrokenPipeError by itself."""


def print_line(text: str) -> None:
    """One line of data, flushed at once so that a reader of a pipe sees it now.

    Raises:
        ReaderLeft: nobody reads any more.
    """
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderLeft from None


def print_json(value: Any) -> None:
    """One JSON object a line, flushed at once."""
    print_line(msgspec.json.encode(value, enc_hook=str).decode())


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> None:
    """Rows under a header, columns aligned by terminal cells; columns named in ``right`` are right-aligned."""
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(width_of(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        aligned: list[tuple[str, int, Align]] = [
            (cell, width, "right" if column in right else "left")
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print_line("  ".join(fit(*cell) for cell in aligned).rstrip())


def drop_stdout() -> None:
    """After a broken pipe: point stdout at nowhere, so that the interpreter's last flush is quiet."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
