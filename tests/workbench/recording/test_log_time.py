"""Durations on a recording's axis are those that passed."""

from __future__ import annotations

from itertools import pairwise

import pytest

from probes.clock import EventClock, FakeClock
from workbench.recording.log_time import LogTime


@pytest.mark.parametrize("jump", [-5.0, 3600.0, -3600.0])
def test_a_wall_clock_set_in_mid_session(jump: float) -> None:
    """B101: the clock is set and the engine starts anew; the axis goes on as time did, and never backwards."""
    clock = FakeClock()
    axis, events = LogTime(clock), EventClock(clock)
    places = []
    for number in range(20):
        if number == 10:
            clock.step_wall(jump)
            events = EventClock(clock)
        clock.advance(0.5)
        places.append(axis.of(events.t(), "one" if number < 10 else "two") / 1e9)
    assert [after - before for before, after in pairwise(places)] == [pytest.approx(0.5)] * 19


def test_within_one_boot_a_late_event_stands_where_it_came() -> None:
    clock = FakeClock()
    axis = LogTime(clock)
    first = axis.of(100.0, "one")
    assert first == 100_000_000_000
    assert axis.of(97.0, "one") == first
    assert axis.of(100.25, "one") == 100_250_000_000
    assert axis.last == 100_250_000_000


def test_a_clock_ahead_of_the_recorders_is_kept() -> None:
    """B101: engine and recorder on skewed clocks; ages within the recording are the engine's."""
    axis = LogTime(FakeClock(now=1_700_000_000.0))
    assert axis.of(1_700_003_600.0, "one") == 1_700_003_600 * 10**9
    assert axis.of(1_700_003_601.0, "one") == 1_700_003_601 * 10**9
