"""Exit codes of the server process; ``specwb serve`` passes them on, so they are the command's own."""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """Numbers are a contract: scripts branch on them."""

    OK = 0
    """Stopped by SIGTERM, in order."""
    FAILED = 1
    """The engine could not start, or could not be kept running."""
    USAGE = 2
    """The configuration, the name or the port cannot be used; nothing was started."""
    INTERRUPTED = 130
    """Ctrl-C (128 + SIGINT)."""
