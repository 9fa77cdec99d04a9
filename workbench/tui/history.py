"""What happened in each of the last minutes' seconds, in the engine's own time. Bounded, and gaps stay gaps. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from probes.events import StepEvent

SECONDS = 900
"""How far back it reaches."""
QUIET_S = 3
"""The engine is heard once a second; a longer silence is time of which nothing is known."""
LONGEST_STEP_S = 120
MARKS = 200

MomentKind = Literal["knob", "gap", "restart", "alert"]


@dataclass(slots=True)
class Second:
    """One second in which the engine was heard. Tokens and times of a step are spread over the seconds it took, so that
    a step of 200 ms does not make a comb of the plot."""

    number: int
    """Whole seconds since the epoch, by the engine's clock."""
    is_lossy: bool = False
    """Steps of this second never came: its sums are too low."""
    emitted: float = 0.0
    correct: int = 0
    verified: int = 0
    spec: float = 0.0
    """Seconds spent in speculating steps."""
    plain: float = 0.0
    """The same in plain and mixed ones."""
    prefill: float = 0.0
    running: int = 0
    """Most requests in a step, prompts included."""
    queue: int = 0
    """Most requests that waited for admission."""


@dataclass(frozen=True)
class Moment:
    """Something that happened at a point of time and is no step."""

    t: float
    kind: MomentKind
    text: str


class History:
    """A ring of seconds. ``hear`` and ``add`` take what comes, in order."""

    def __init__(self, seconds: int = SECONDS) -> None:
        self._ring: list[Second | None] = [None] * seconds
        self._newest: int | None = None
        self._last: tuple[int, float] | None = None  # (number, t) of the newest step
        self._lost = 0  # steps that never came before the next one
        self._restarted = ""
        self.moments: deque[Moment] = deque(maxlen=MARKS)

    def hear(self, t: float) -> None:
        """The engine said something at ``t``: it was there, also in the second or two that it was silent before."""
        number = int(t)
        newest = self._newest
        if newest is not None and number < newest - len(self._ring):
            self._ring = [None] * len(self._ring)  # its clock was set back by more than we keep
            self._newest = newest = None
        if newest is None:
            self._make(number)
        elif number > newest:
            for missing in range(newest + 1 if number - newest <= QUIET_S else number, number + 1):
                self._make(missing)
        if self._restarted:
            self.mark(t, "restart", self._restarted)
            self._restarted = ""

    def add(self, step: StepEvent) -> None:
        """Take a step in."""
        self.hear(step.t)
        began = self._began(step)
        if self._lost:
            self._mark_loss(step.t)
        self._last = (step.step, step.t)
        first, last = int(began), int(step.t)
        took = step.t - began
        load = step.requests + step.prefill_requests
        for number in range(max(first, last - LONGEST_STEP_S), last + 1):
            second = self.second(number) or self._make(number)
            inside = min(step.t, number + 1) - max(began, number)
            second.emitted += step.emitted * (inside / took if took > 0 else float(number == last))
            if step.mode == "spec":
                second.spec += inside
            elif step.mode == "prefill":
                second.prefill += inside
            else:
                second.plain += inside
            if load > second.running:
                second.running = load
            if step.queue > second.queue:
                second.queue = step.queue
        second.correct += step.correct_drafts  # of the last second: the step ended in it
        second.verified += step.verified

    def lose(self, count: int) -> None:
        """That many steps never came; they were before the next one."""
        self._lost += count

    def restart(self, text: str) -> None:
        """The next that is heard is of a new boot."""
        self._last = None
        self._restarted = text

    def mark(self, t: float, kind: MomentKind, text: str) -> None:
        """Something happened at ``t``."""
        self.moments.append(Moment(t, kind, text))

    @property
    def newest(self) -> int | None:
        """The second in which the engine was heard last."""
        return self._newest

    def second(self, number: int) -> Second | None:
        """What is known of a second; None when nothing is."""
        second = self._ring[number % len(self._ring)]
        return second if second is not None and second.number == number else None

    def between(self, first: int, end: int) -> Iterator[Second]:
        """The known seconds from ``first`` up to, and without, ``end``."""
        for number in range(first, end):
            second = self.second(number)
            if second is not None:
                yield second

    def _make(self, number: int) -> Second:
        second = Second(number)
        self._ring[number % len(self._ring)] = second
        self._newest = number if self._newest is None else max(self._newest, number)
        return second

    def _began(self, step: StepEvent) -> float:
        """From the end of the step before; after idling or a loss, as long ago as its own stages took."""
        if self._last is not None and step.round_us and step.step == self._last[0] + 1 and step.t >= self._last[1]:
            return self._last[1]
        return step.t - sum(step.cpu_us.values()) / 1e6

    def _mark_loss(self, t: float) -> None:
        first = int(self._last[1]) if self._last is not None else int(t)
        for second in self.between(max(first, int(t) - len(self._ring) + 1), int(t) + 1):
            second.is_lossy = True
        self.mark(t, "gap", f"{self._lost} steps lost")
        self._lost = 0
