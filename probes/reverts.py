"""Knob changes that end by themselves: which knob goes back to what, and when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from probes.duration import duration_text
from probes.events import KnobRevert
from probes.knobs import KnobError

SHORTEST_S = 1.0
LONGEST_S = 7 * 86_400.0
"""A change for longer than a week is no passing one."""


def check_revert_after(seconds: float | None) -> None:
    """Refuse a time after which no change can be taken back.

    Raises:
        KnobError: out of range (or not a number).
    """
    if seconds is not None and not SHORTEST_S <= seconds <= LONGEST_S:
        raise KnobError(
            f"revert_after_s is {seconds:g} s, expected {SHORTEST_S:g} s to {duration_text(LONGEST_S)}; "
            f"leave it out for a change that stays",
            code="bad_value",
        )


@dataclass(frozen=True)
class TimedChange:
    """A change in force that will be taken back."""

    back_to: dict[str, Any]
    """Knobs that still have the value that was set -> value to go back to."""
    new: dict[str, Any]
    """All knobs that were set to go back -> value set."""
    who: str
    why: str
    after_s: float
    t: float
    """When it is due, by the clock of the events."""

    @property
    def left_alone(self) -> list[str]:
        """Knobs that somebody has set since: theirs is the word now."""
        return [knob for knob in self.new if knob not in self.back_to]

    def without(self, knobs: Iterable[str]) -> TimedChange:
        """The same, after somebody set these knobs."""
        gone = set(knobs)
        return replace(self, back_to={knob: value for knob, value in self.back_to.items() if knob not in gone})

    @property
    def words(self) -> str:
        """Whose change ends, for the record of its end."""
        was = ", ".join(f"{knob} to {value}" for knob, value in self.new.items())
        why = f" ({self.why})" if self.why else ""
        alone = f"; {', '.join(self.left_alone)} left alone, changed since" if self.left_alone else ""
        return f"revert, {duration_text(self.after_s)} after {self.who or 'someone'} set {was}{why}{alone}"


class Reverts:
    """What waits to be taken back, soonest first. A knob waits at most once. May be read from any thread."""

    def __init__(self) -> None:
        self._changes: tuple[TimedChange, ...] = ()  # replaced, never changed: the bus's thread reads it

    @property
    def next_t(self) -> float | None:
        """When the next one is due."""
        return self._changes[0].t if self._changes else None

    def waiting(self) -> list[KnobRevert]:
        """Every knob that will go back, soonest first."""
        return [
            KnobRevert(knob=knob, back_to=value, t=change.t, who=change.who, why=change.why)
            for change in self._changes
            for knob, value in change.back_to.items()
        ]

    def settled(self, values: dict[str, Any]) -> dict[str, Any]:
        """Knob -> the value it would end up with if nobody did anything: what it goes back to, else the one given."""
        back = {revert.knob: revert.back_to for revert in self.waiting()}
        return {knob: back.get(knob, value) for knob, value in values.items()}

    def add(self, change: TimedChange) -> None:
        """Keep a change; its knobs must not wait already."""
        self._changes = tuple(sorted((*self._changes, change), key=lambda each: each.t))

    def cancel(self, knobs: Iterable[str]) -> bool:
        """Somebody sets these knobs: they go back no longer. True when one of them would have."""
        gone = set(knobs)
        changes = [change.without(gone) for change in self._changes]
        was_waiting = any(gone & change.back_to.keys() for change in self._changes)
        self._changes = tuple(change for change in changes if change.back_to)
        return was_waiting

    def take_due(self, t: float) -> list[TimedChange]:
        """The changes to take back now, in the order in which they are due; they wait no longer."""
        due = [change for change in self._changes if change.t <= t]
        self._changes = self._changes[len(due) :]
        return due
