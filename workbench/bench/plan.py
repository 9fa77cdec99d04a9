"""Which runs a benchmark consists of, and in which order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MODES = ("off", "on", "auto")


@dataclass(frozen=True)
class Level:
    """How heavy the load is: so many clients (closed loop), or so many requests a second (open loop)."""

    clients: int | None = None
    rate: float | None = None

    @property
    def text(self) -> str:
        if self.clients is not None:
            return f"{self.clients} client" if self.clients == 1 else f"{self.clients} clients"
        return f"{self.rate:g} requests/s"

    @property
    def short(self) -> str:
        return str(self.clients) if self.clients is not None else f"{self.rate:g}/s"


@dataclass(frozen=True)
class Setting:
    """What one run has of its own: its level and, where they are switched, the value of the knob ``spec``."""

    level: Level
    mode: str | None
    round: int
    """From 0."""


def settings(levels: Sequence[Level], modes: Sequence[str], rounds: int) -> Iterator[Setting]:
    """Level by level, round by round; within a round each mode once.

    The first of a round is another one each time, and every other round runs backwards: whatever drifts on the
    machine meanwhile hits all modes alike.
    """
    for level in levels:
        for number in range(rounds):
            first = number % len(modes) if modes else 0
            order: list[str | None] = [*modes[first:], *modes[:first]]
            for mode in (order if number % 2 == 0 else order[::-1]) or [None]:
                yield Setting(level, mode, number)


def requests_for(level: Level, prompts: int) -> int:
    """Requests a run, unless a person said how many: each prompt equally often, and each client at least twice."""
    least = 2 * level.clients if level.clients else 16
    return max(1, math.ceil(least / prompts)) * prompts
