"""Which rows of a timeline a table shows, and in which order: all, those that pass a filter, or sorted.

A *position* is a place in the table, a *number* is the timeline's name of a row. Positions of rows that are shown never
change, so that what one reads stays where it is while rows come at the end and go at the beginning.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from typing import Protocol

from probes.events import StepEvent
from workbench.tui.step_filter import StepFilter
from workbench.tui.step_order import StepOrder
from workbench.tui.timeline import Entry, Timeline

LOOK_AT_CLOCK = 64
"""Rows between two looks at the clock while scanning."""


class Rows(Protocol):
    """What a table needs to know of its rows."""

    @property
    def first(self) -> int:
        """Position of the oldest row."""
        ...

    @property
    def end(self) -> int:
        """Position behind the newest row."""
        ...

    @property
    def is_complete(self) -> bool:
        """Every row has been looked at."""
        ...

    def row(self, position: int) -> Entry | None:
        """What stands there; None beyond the ends."""
        ...

    def number(self, position: int) -> int:
        """The timeline's number of the row at a position within the ends."""
        ...

    def nearest(self, number: int) -> int:
        """Position of the row with that number, else of the next one, else of the last."""
        ...

    def advance(self, seconds: float) -> bool:
        """Take in what is new, for about so long; True when rows came or went."""
        ...

    def frozen(self, timeline: Timeline) -> Rows:
        """The same rows at the same positions, on a snapshot of their timeline."""
        ...


class AllRows:
    """Every row; positions are numbers."""

    is_complete = True

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._seen = (-1, -1)

    @property
    def first(self) -> int:
        return self._timeline.first

    @property
    def end(self) -> int:
        return self._timeline.end

    def row(self, position: int) -> Entry | None:
        return self._timeline.row(position)

    def number(self, position: int) -> int:
        return position

    def nearest(self, number: int) -> int:
        return max(self.first, min(number, self.end - 1))

    def advance(self, seconds: float) -> bool:
        seen, self._seen = self._seen, (self.first, self.end)
        return seen != self._seen

    def frozen(self, timeline: Timeline) -> AllRows:
        return AllRows(timeline)


class FilteredRows:
    """Steps that pass a filter. Each row is looked at once: new ones as they come, the kept ones newest first, a slice
    at a time, so that a filter over a long history shows its newest matches at once."""

    def __init__(self, timeline: Timeline, wanted: StepFilter) -> None:
        self._timeline = timeline
        self._wanted = wanted
        self._newer: list[int] = []  # numbers from the start on, rising: positions _base, _base + 1, …
        self._older: list[int] = []  # numbers before the start, falling: positions -1, -2, …
        self._base = 0
        self._next = timeline.end  # number to look at next, upwards
        self._behind = timeline.end  # numbers from here to _next have been looked at

    @property
    def is_complete(self) -> bool:
        """Every kept row has been looked at."""
        return self._behind <= self._timeline.first

    @property
    def share_done(self) -> float:
        """Part of the kept rows that has been looked at, 0 to 1."""
        kept = len(self._timeline)
        return (self._next - self._behind) / kept if kept else 1.0

    @property
    def matches(self) -> int:
        """Steps among the kept ones that pass."""
        return len(self._newer) + len(self._older)

    @property
    def first(self) -> int:
        return -len(self._older) if self._older else self._base

    @property
    def end(self) -> int:
        return self._base + len(self._newer)

    def row(self, position: int) -> Entry | None:
        return self._timeline.row(self.number(position)) if self.first <= position < self.end else None

    def number(self, position: int) -> int:
        return self._newer[position - self._base] if position >= self._base else self._older[-1 - position]

    def nearest(self, number: int) -> int:
        at_or_after = bisect_right(self._older, -number, key=lambda older: -older)
        if at_or_after:
            return -at_or_after
        return max(self.first, min(self._base + bisect_left(self._newer, number), self.end - 1))

    def advance(self, seconds: float) -> bool:
        before = (self.first, self.end)
        self._forget()
        deadline = time.perf_counter() + seconds
        while self._next < self._timeline.end:
            if self._passes(self._next):
                self._newer.append(self._next)
            self._next += 1
        count = 0
        while self._behind > self._timeline.first:
            self._behind -= 1
            if self._passes(self._behind):
                self._older.append(self._behind)
            count += 1
            if count % LOOK_AT_CLOCK == 0 and time.perf_counter() > deadline:
                break
        return before != (self.first, self.end)

    def frozen(self, timeline: Timeline) -> FilteredRows:
        copy = FilteredRows(timeline, self._wanted)
        copy._newer, copy._older = self._newer.copy(), self._older.copy()
        copy._base, copy._next, copy._behind = self._base, self._next, self._behind
        return copy

    def _passes(self, number: int) -> bool:
        entry = self._timeline.row(number)
        return isinstance(entry, StepEvent) and self._wanted.matches(entry)

    def _forget(self) -> None:
        """Drop what the timeline no longer has."""
        first = self._timeline.first
        while self._older and self._older[-1] < first:
            self._older.pop()
        if self._newer and self._newer[0] < first:
            gone = bisect_left(self._newer, first)
            del self._newer[:gone]
            self._base += gone
        self._next, self._behind = max(self._next, first), max(self._behind, first)


class SortedRows:
    """Rows of others, which stand still, in the order of a key. Steps without a value come last; marks are left out."""

    is_complete = True
    first = 0

    def __init__(self, rows: Rows, timeline: Timeline, order: StepOrder) -> None:
        while not rows.is_complete:
            rows.advance(1.0)
        with_value: list[tuple[float | str, int]] = []
        without: list[int] = []
        for number in map(rows.number, range(rows.first, rows.end)):
            payload = timeline.payload(number)
            if payload is not None:
                value = order.value(payload)
                without.append(number) if value is None else with_value.append((value, number))
        with_value.sort(key=lambda pair: pair[0], reverse=order.largest_first)
        self._timeline = timeline
        self._numbers = [number for _, number in with_value] + without

    @property
    def end(self) -> int:
        return len(self._numbers)

    def row(self, position: int) -> Entry | None:
        return self._timeline.row(self._numbers[position]) if 0 <= position < self.end else None

    def number(self, position: int) -> int:
        return self._numbers[position]

    def nearest(self, number: int) -> int:
        return self._numbers.index(number) if number in self._numbers else 0

    def advance(self, seconds: float) -> bool:
        return False

    def frozen(self, timeline: Timeline) -> SortedRows:
        return self
