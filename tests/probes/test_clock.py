"""Clocks that tests move."""

from __future__ import annotations

import pytest

from probes.clock import EventClock, FakeClock, SystemClock


def test_event_time_is_boot_wall_time_plus_monotonic_time() -> None:
    """B101: an hour forward and five seconds back on the wall leave durations as they were."""
    clock = FakeClock(now=1000.0)
    stamps = EventClock(clock)
    assert stamps.t() == 1000.0
    clock.advance(2.0)
    clock.step_wall(3600.0)
    assert stamps.t() == 1002.0
    clock.step_wall(-3605.0)
    clock.advance(0.5)
    assert stamps.t() == 1002.5


def test_fake_time_passes_only_forward() -> None:
    with pytest.raises(ValueError, match="step_wall"):
        FakeClock().advance(-1.0)


def test_system_clock_is_the_machines() -> None:
    clock = SystemClock()
    stamps = EventClock(clock)
    first, second = stamps.t(), stamps.t()
    assert first <= second
    assert abs(clock.now() - second) < 60.0
