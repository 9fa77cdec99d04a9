"""What a verb that fills the terminal needs of it."""

from __future__ import annotations

import os
import sys

from workbench.console import fail
from workbench.exit_codes import ExitCode


def require_terminal(verb: str, instead: str) -> None:
    """A full screen needs a terminal on all ends, one that can move its cursor.

    Raises:
        CommandError: there is none; says what works ``instead``.
    """
    # Textual draws on stderr: with that in a file the screen would run unseen.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        fail(ExitCode.USAGE, f"{verb} needs a terminal on stdin, stdout and stderr; {instead}")
    if os.environ.get("TERM", "") in ("", "dumb"):
        fail(ExitCode.USAGE, f"{verb} needs a terminal that can move its cursor (TERM is dumb or unset); {instead}")
