"""The clock of a replay."""

from __future__ import annotations

import math

import pytest

from probes.clock import Clock, FakeClock
from workbench.replay.player_clock import SPEEDS, PlayerClock, speed_text

START, END = 1_700_000_000.0, 1_700_000_100.0


def make(**options: float) -> tuple[PlayerClock, FakeClock]:
    real = FakeClock()
    return PlayerClock(START, END, real=real, **options), real


def test_it_is_a_clock_in_the_recordings_time() -> None:
    clock, real = make()
    as_clock: Clock = clock
    real.advance(12.5)
    clock.run()
    assert as_clock.now() == as_clock.monotonic() == START + 12.5
    assert clock.offset == 12.5


def test_it_stands_still_between_two_runs() -> None:
    """All panels of a paint show one time; a pause keeps what is on the screen."""
    clock, real = make(speed=64.0)
    real.advance(0.1)
    clock.run()
    shown = clock.position
    real.advance(0.1)
    assert clock.position == shown
    clock.pause()
    assert clock.run() == shown


def test_pause_and_resume_lose_nothing_of_the_recording() -> None:
    clock, real = make()
    real.advance(3.0)
    clock.run()
    clock.pause()
    real.advance(3600.0)
    assert clock.run() == START + 3
    clock.resume()
    real.advance(2.0)
    assert clock.run() == START + 5


@pytest.mark.parametrize("speed", [0.1, 0.5, 1.0, 8.0, 64.0])
def test_speed(speed: float) -> None:
    clock, real = make(speed=speed)
    real.advance(1.0)
    assert clock.run() == pytest.approx(START + speed)


def test_a_change_of_speed_holds_from_the_next_moment() -> None:
    clock, real = make()
    real.advance(10.0)
    clock.run()
    clock.set_speed(4.0)
    real.advance(1.0)
    assert clock.run() == START + 14


def test_it_stops_at_the_end_and_at_max_is_there_at_once() -> None:
    clock, real = make(speed=math.inf)
    assert clock.run() == START
    real.advance(0.001)
    assert clock.run() == END
    assert clock.is_at_end
    clock.set(START + 1)
    assert not clock.is_at_end


def test_it_stays_within_the_recording() -> None:
    clock, _ = make()
    clock.set(END + 5)
    assert clock.position == END
    clock.set(START - 5)
    assert clock.position == START


def test_a_wall_clock_that_is_set_does_not_move_it() -> None:
    """B101: back by five seconds, forward by an hour, in mid-session."""
    clock, real = make()
    real.advance(1.0)
    clock.run()
    real.step_wall(-5.0)
    clock.run()
    real.step_wall(3600.0)
    assert clock.run() == START + 1


def test_notches() -> None:
    clock, _ = make()
    seen = [clock.speed]
    for _ in range(12):
        clock.change_speed(1)
        seen.append(clock.speed)
    assert seen[-1] == math.inf
    assert seen[:3] == [1.0, 2.0, 4.0]
    for _ in range(20):
        clock.change_speed(-1)
    assert clock.speed == SPEEDS[0]
    clock.set_speed(3.0)
    clock.change_speed(1)
    assert clock.speed == 4.0
    clock.set_speed(3.0)
    clock.change_speed(-1)
    assert clock.speed == 2.0
    assert [speed_text(speed) for speed in (0.1, 1.0, 64.0, math.inf)] == ["0.1x", "1x", "64x", "max"]


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan])
def test_speeds_that_do_not_play(speed: float) -> None:
    clock, _ = make()
    with pytest.raises(ValueError, match="does not play"):
        clock.set_speed(speed)
