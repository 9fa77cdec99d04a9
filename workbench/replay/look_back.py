"""What a state must be told to stand at a time as if it had been there all along.

Not everything before it: the newest steps, as many as the panels' windows reach back; everything rare (knobs, alerts,
losses, restarts), because counts and knobs come from it; the steps around the last verify, because the last accept
length is shown however old it is. So the time a seek takes does not depend on the length of the recording.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from operator import itemgetter

from probes.events import StepEvent
from probes.subscriber import Received
from workbench.replay.recorded_session import RecordedSession, just_after
from workbench.tui.feed import Skipped

KEEP_STEPS = 1000
"""Steps before the place, at least (or all there are)."""
KEEP_S = 12.0
"""Seconds before the place, at least: the status line's windows are 5 and 10 s long …"""
MOST_STEPS = 4000
"""… unless they hold more steps than this."""
ACCEPT_S = 10.5
"""Seconds before a verify whose steps its accept length is made of, and a bit."""
HEARTBEAT_S = 15.0
"""Heartbeats of so many seconds before the place: an idle day has more of them than anybody wants."""

RARE = ("hello", "knob", "alert", "drop", "gap", "restart", "malformed")

Timed = tuple[float, Received]
Told = tuple[float, Received | Skipped]
_time = itemgetter(0)


def _from(start: float, items: Iterable[Timed]) -> list[Timed]:
    """Those of a span; a damaged part of the file belongs to the span it begins in."""
    return [timed for timed in items if timed[0] >= start]


def _skipped(first: Timed) -> Told:
    """Before the first item that follows a hole."""
    t, item = first
    before = f" before {item.step}" if isinstance(item, StepEvent) else " before these"
    return t, Skipped(f"the steps{before} are in the recording; go back to see them")


class LookBack:
    """Reads a recording for one state after another. Keeps the rare items in memory."""

    def __init__(self, session: RecordedSession, topics: Iterable[str]) -> None:
        """``topics``: what the state is told while playing."""
        self._session = session
        self._topics = tuple(topics)
        self._rare: list[Timed] | None = None

    @property
    def rare(self) -> list[Timed]:
        """All rare items, oldest first; read when first asked for."""
        if self._rare is None:
            self._rare = list(self._session.items(topics=RARE))
        return self._rare

    def at(self, t: float) -> list[Told]:
        """What to tell for the time ``t``, included, oldest first; where steps are left out it says so."""
        times = self._newest_steps(t)
        begin = times[0] if times else self._session.info.start
        before = self.step_before(begin)
        if before is None:
            begin = self._session.info.start
        heartbeat = self._session.before(max(begin, t - HEARTBEAT_S), "heartbeat", 1)
        window = self._window(begin, t, heartbeat)
        if before is None:
            return [*window]
        verify = self._last_verify(window, begin)
        lead = self._steps(verify - ACCEPT_S, min(verify, begin), begin) if verify is not None else []
        older: list[Told] = [*self.rare[: bisect_left(self.rare, begin, key=_time)]]
        if heartbeat and heartbeat[0][0] < begin:
            older = list(heapq.merge(older, heartbeat, key=_time))
        if lead:
            is_first = self.step_before(lead[0][0]) is None
            older = list(heapq.merge(older, lead if is_first else [_skipped(lead[0]), *lead], key=_time))
        if not lead or lead[-1][0] < before:
            older.append(_skipped(window[0]))
        return [*older, *window]

    def step_before(self, t: float) -> float | None:
        """Time of the newest step strictly before ``t``; None when there is none."""
        count = 2
        while True:
            times = self._session.times_before(t, "step", count)
            earlier = [at for at in times if at < t]  # several may share a time
            if earlier or len(times) < count:
                return earlier[-1] if earlier else None
            count *= 8

    def _newest_steps(self, t: float) -> list[float]:
        """The times of the steps that are told."""
        count = KEEP_STEPS
        times = self._session.times_before(t, "step", count)
        while len(times) == count < MOST_STEPS and times[0] >= t - KEEP_S:
            count = min(count * 3 // 2, MOST_STEPS)  # little by little: each is read from the file
            times = self._session.times_before(t, "step", count)
        if count > KEEP_STEPS:
            # One more: that there were steps before the windows is known to them, too.
            first = max(0, bisect_left(times, t - KEEP_S) - 1)
            times = times[min(len(times) - KEEP_STEPS, first) :]
        return times

    def _window(self, begin: float, t: float, heartbeat: list[Timed]) -> list[Timed]:
        """Everything from ``begin`` to ``t``; of the heartbeats only the last ones."""
        topics = (*self._topics, "gap", "restart", "malformed")
        border = max(begin, t - HEARTBEAT_S)
        window: list[Timed] = []
        if border > begin:
            calm = [topic for topic in topics if topic != "heartbeat"]
            found = self._session.items(start=begin, end=border, topics=calm)
            beats = [beat for beat in heartbeat if begin <= beat[0] < border]
            window = list(heapq.merge(_from(begin, found), beats, key=_time))
        return window + _from(border, self._session.items(start=border, end=just_after(t), topics=topics))

    def _last_verify(self, window: list[Timed], begin: float) -> float | None:
        """Time of the last step that verified, if its accept length is made of steps before ``begin``."""
        for t, step in reversed(window):
            if isinstance(step, StepEvent) and step.verified:
                return t if t - ACCEPT_S < begin else None
        # No step of the window verified, so the last one that did stands before a switch to plain.
        switches = [mark for mark in self._session.marks() if mark.kind == "switch" and mark.t <= begin]
        for mark in reversed(switches[-2:]):
            for count in (10, KEEP_STEPS):  # most often it is right before the switch
                for t, step in reversed(self._session.before(mark.t, "step", count)):
                    if isinstance(step, StepEvent) and step.verified:
                        return t
        return None

    def _steps(self, start: float, end: float, before: float) -> list[Timed]:
        """The newest steps of a span."""
        found = self._session.items(start=start, end=min(just_after(end), before), topics=("step",))
        return list(deque(_from(start, found), maxlen=MOST_STEPS))
