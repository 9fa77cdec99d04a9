"""What the player asks of a recording. ``Recording`` in workbench/recording answers; a test may do so from memory."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Protocol

from probes.subscriber import Received


class SessionInfo(Protocol):
    """A recording in a few numbers."""

    @property
    def start(self) -> float:
        """Time of the first item, seconds since the epoch."""
        ...

    @property
    def end(self) -> float:
        """Time of the last item."""
        ...

    @property
    def counts(self) -> Mapping[str, int]:
        """Topic -> items."""
        ...

    @property
    def missing(self) -> str:
        """What the recording lacks, in words; empty when it is whole."""
        ...

    @property
    def repaired(self) -> str:
        """What a repair had to leave out, in words; empty when there was none."""
        ...


class SessionMark(Protocol):
    """Something worth jumping to."""

    @property
    def t(self) -> float: ...

    @property
    def kind(self) -> str:
        """``switch``, ``knob``, ``alert``, ``gap``, ``restart``."""
        ...

    @property
    def text(self) -> str: ...


class RecordedSession(Protocol):
    """Items with the times they were recorded at, in seconds since the epoch; times never fall."""

    @property
    def info(self) -> SessionInfo: ...

    def items(
        self, start: float | None = None, end: float | None = None, topics: Collection[str] | None = None
    ) -> Iterator[tuple[float, Received]]:
        """Items of these topics (all) with start ≤ time < end, in recorded order. What cannot be read is one
        ``Malformed``, whatever the topics, and its time may lie a little before ``start``."""
        ...

    def before(self, t: float, topic: str, count: int) -> list[tuple[float, Received]]:
        """The newest ``count`` items of a topic at or before ``t``, oldest first."""
        ...

    def times_before(self, t: float, topic: str, count: int) -> list[float]:
        """The times of what ``before`` gives, without the items."""
        ...

    def marks(self) -> Sequence[SessionMark]:
        """All marks, oldest first."""
        ...


def just_after(t: float) -> float:
    """The end of a span that has ``t`` in it."""
    return math.nextafter(t, math.inf)
