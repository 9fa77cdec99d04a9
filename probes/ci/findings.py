"""What a scripted probe found: one line a claim, and an exit code."""

from __future__ import annotations

import sys
from enum import IntEnum


class ProbeExit(IntEnum):
    """The numbers that all commands of the project use."""

    OK = 0
    """Every claim holds."""
    FALSE = 1
    """At least one does not."""
    USAGE = 2
    """This engine cannot be probed so, or the command line is wrong. Nothing was changed."""
    NO_ENGINE = 3
    UNREACHABLE = 5
    """The engine did not answer, or an answer never came."""


class Unsuited(Exception):
    """The engine cannot be probed as it is; the message says what would make it fit."""


class Findings:
    """Claims about the engine, printed as they are settled."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self._count = 0

    def say(self, text: str) -> None:
        """What goes on, or a note."""
        print(text, flush=True)

    def claim(self, what: str, holds: bool, found: str = "") -> None:
        """Settle one claim. ``found``: the numbers behind it."""
        self._count += 1
        if not holds:
            self.failed.append(what)
        self.say(f"{'ok   ' if holds else 'FAIL '} {what}" + (f": {found}" if found else ""))

    def finish(self) -> ProbeExit:
        """Say how it ended."""
        if self.failed:
            self.say(f"FAILED: {len(self.failed)} of {self._count} claims do not hold")
            return ProbeExit.FALSE
        self.say(f"passed: {self._count} claims hold")
        return ProbeExit.OK


def complain(text: str) -> None:
    """Why nothing was found out: stderr."""
    print(f"probe: {text}", file=sys.stderr, flush=True)
