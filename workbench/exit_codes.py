"""What the exit status of every ``specwb`` command means. Numbers are a contract: scripts branch on them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """One table for all commands; the text is what ``specwb --help`` says about each."""

    OK = 0
    """The command did what it was asked."""
    FALSE = 1
    """It ran, and the answer is no: a check failed, a comparison differed, the server died."""
    USAGE = 2
    """The command line is wrong, or needs a terminal that is not there. Nothing was started."""
    NO_ENGINE = 3
    """No running engine of that name, or several where one was needed."""
    REFUSED = 4
    """The engine said no; its reason is on stderr and nothing changed."""
    UNREACHABLE = 5
    """The engine is listed but did not answer in time, or fell silent."""
    MISSING_EXTRA = 6
    """An optional part of the installation is needed; the message names the pip line."""
    INTERNAL = 70
    """A bug in specwb itself."""
    HUNG_UP = 129
    """SIGHUP: the terminal was closed (128 + 1)."""
    INTERRUPTED = 130
    """Ctrl-C (128 + SIGINT)."""
    BROKEN_PIPE = 141
    """The reader of our output left (128 + SIGPIPE); nothing is printed about it."""
    TERMINATED = 143
    """SIGTERM (128 + 15)."""


MEANINGS: dict[ExitCode, str] = {
    ExitCode.OK: "done",
    ExitCode.FALSE: "ran, and the answer is no",
    ExitCode.USAGE: "wrong command line, or no terminal",
    ExitCode.NO_ENGINE: "no such engine",
    ExitCode.REFUSED: "the engine refused",
    ExitCode.UNREACHABLE: "the engine did not answer in time",
    ExitCode.MISSING_EXTRA: "an optional part is not installed",
    ExitCode.INTERNAL: "a bug in specwb",
    ExitCode.HUNG_UP: "the terminal was closed",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.BROKEN_PIPE: "the reader of the output left",
    ExitCode.TERMINATED: "terminated",
}
