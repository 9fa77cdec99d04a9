"""Where in a recording a step ran. Recordings know times, not step numbers: close in on it, then read the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from probes.events import StepEvent
from workbench.replay.recorded_session import RecordedSession, just_after

NEAR = 500
"""Steps that are read in a row rather than jumped over."""
MAX_JUMPS = 60


@dataclass(frozen=True)
class FoundStep:
    """A step whose time is known."""

    t: float
    number: int
    boot_id: str


def find_step(session: RecordedSession, number: int) -> FoundStep | None:
    """The step of that number, or the first one after it if it was lost; None when the recording has neither.

    Numbers start anew with each boot of the engine: the first boot that has the step counts.
    """
    info = session.info
    borders = [info.start, *(mark.t for mark in session.marks() if mark.kind == "restart"), info.end]
    nearest: FoundStep | None = None
    boots: set[str] = set()
    for start, end in pairwise(borders):
        # What lies at a border may be of either boot.
        first = next((step for step in _steps(session, start, end) if step.boot_id not in boots), None)
        if first is None:
            continue
        boots.add(first.boot_id)
        found = _find_within(session, number, first, end)
        if found is not None and found.number == number:
            return found
        nearest = nearest or found
    return nearest


def _find_within(session: RecordedSession, number: int, low: FoundStep, end: float) -> FoundStep | None:
    """The same within the boot that begins with ``low``, where numbers grow with time."""
    high = _newest(session, end, low.boot_id)
    if high is None or high.number < number:
        return None
    if number <= low.number:
        return low
    for jump in range(MAX_JUMPS):
        if number - low.number <= NEAR or high.t <= low.t:
            break
        share = (number - low.number) / (high.number - low.number) if jump % 2 == 0 else 0.5
        # A little early: what lies right behind is read in a row.
        middle = low.t + (high.t - low.t) * share * 0.999
        found = _newest(session, middle, low.boot_id)
        if found is None or found.number <= low.number:
            low = FoundStep(middle, low.number, low.boot_id)
        elif found.number <= number:
            low = found
        else:
            high = FoundStep(middle, found.number, low.boot_id)
    steps = _steps(session, low.t, end)
    return next((step for step in steps if step.boot_id == low.boot_id and step.number >= number), None)


def _steps(session: RecordedSession, start: float, end: float) -> Iterator[FoundStep]:
    """Steps from ``start`` to ``end``, both included."""
    for t, step in session.items(start=start, end=just_after(end), topics=("step",)):
        if isinstance(step, StepEvent):  # a message that cannot be read is another thing
            yield FoundStep(t, step.step, step.boot_id)


def _newest(session: RecordedSession, t: float, boot_id: str) -> FoundStep | None:
    """The newest step of a boot at or before ``t``, looked for among a few."""
    for at, step in reversed(session.before(t, "step", 5)):
        if isinstance(step, StepEvent) and step.boot_id == boot_id:
            return FoundStep(at, step.step, boot_id)
    return None
