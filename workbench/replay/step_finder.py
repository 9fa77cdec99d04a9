"""Where in a recording a step ran. Recordings know times, not step numbers: close in on it, then read the rest."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from probes.events import StepEvent
from workbench.replay.recorded_session import RecordedSession, just_after

NEAR = 500
"""Steps that are read in a row rather than jumped over."""
MAX_JUMPS = 60


@dataclass(frozen=True)
class _Known:
    """A step whose time is known."""

    t: float
    number: int


def find_step(session: RecordedSession, number: int) -> _Known | None:
    """The step of that number, or the first one after it if it was lost; None when the recording has neither.

    Numbers start anew with each boot of the engine: the first boot that has the step counts.
    """
    info = session.info
    borders = [info.start, *(mark.t for mark in session.marks() if mark.kind == "restart"), info.end]
    nearest: _Known | None = None
    for start, end in pairwise(borders):
        found = _find_within(session, number, start, end)
        if found is not None and found.number == number:
            return found
        nearest = nearest or found
    return nearest


def _find_within(session: RecordedSession, number: int, start: float, end: float) -> _Known | None:
    """The same within one boot, where numbers grow with time."""
    low = _first(session, start, end)
    high = _newest(session, end)
    if low is None or high is None or high.t < start or high.number < number:
        return None
    if number <= low.number:
        return low
    for jump in range(MAX_JUMPS):
        if number - low.number <= NEAR or high.t <= low.t:
            break
        share = (number - low.number) / (high.number - low.number) if jump % 2 == 0 else 0.5
        # A little early: what lies right behind is read in a row.
        middle = low.t + (high.t - low.t) * share * 0.999
        found = _newest(session, middle)
        if found is None or found.number <= low.number:
            low = _Known(middle, low.number)
        elif found.number <= number:
            low = found
        else:
            high = _Known(middle, found.number)
    for t, step in session.items(start=low.t, end=just_after(end), topics=("step",)):
        if isinstance(step, StepEvent) and step.step >= number:
            return _Known(t, step.step)
    return None


def _newest(session: RecordedSession, t: float) -> _Known | None:
    for at, step in reversed(session.before(t, "step", 3)):
        if isinstance(step, StepEvent):  # a message that cannot be read is another thing
            return _Known(at, step.step)
    return None


def _first(session: RecordedSession, start: float, end: float) -> _Known | None:
    for at, step in session.items(start=start, end=just_after(end), topics=("step",)):
        if isinstance(step, StepEvent):
            return _Known(at, step.step)
    return None
