"""Where time comes from: one object that live code, replay and tests can exchange.

Durations come from the monotonic clock only. An event's ``t`` is the wall time at boot plus monotonic time since, so it
never runs backwards when somebody sets the machine's clock.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Both clocks of a machine, in seconds."""

    def now(self) -> float:
        """Seconds since the epoch; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never runs backwards."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()


class FakeClock:
    """A clock that a test moves by hand."""

    def __init__(self, now: float = 1_700_000_000.0, monotonic: float = 1000.0) -> None:
        self._now = now
        self._monotonic = monotonic

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        if seconds < 0:
            raise ValueError(f"time cannot pass backwards ({seconds} s); use step_wall to set the wall clock")
        self._now += seconds
        self._monotonic += seconds

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or NTP does."""
        self._now += seconds


class EventClock:
    """Stamps events: wall time at its creation plus monotonic time since."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._wall = self._clock.now()
        self._start = self._clock.monotonic()

    def t(self) -> float:
        """Seconds since the epoch, never falling."""
        return self._wall + (self._clock.monotonic() - self._start)
