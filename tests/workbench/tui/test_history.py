"""Seconds of the past: sums, gaps, bounds."""

from __future__ import annotations

import pytest

from tests.workbench import made_events as made
from tests.workbench.tui.made_session import MadeSession
from workbench.tui.history import SECONDS, History

T = int(made.T0)


def test_a_long_steps_tokens_are_spread_over_its_seconds() -> None:
    """B84: no second's rate is above what the steps really gave."""
    history = History()
    history.add(made.step(1, 4, t=T + 0.5, emitted=10, cpu_us={"run": 400_000}, round_us=0))
    history.add(made.step(2, 4, t=T + 2.5, emitted=10, round_us=2_000_000))
    tokens = [second.emitted for second in history.between(T, T + 3)]
    assert tokens == pytest.approx([12.5, 5.0, 2.5])
    assert [second.running for second in history.between(T, T + 3)] == [4, 4, 4]


def test_time_is_counted_by_mode() -> None:
    history = History()
    history.add(made.step(1, 2, t=T + 0.4, cpu_us={"run": 400_000}))
    history.add(made.step(2, 9, t=T + 0.7, round_us=300_000))
    history.add(made.prefill(3, t=T + 0.9, round_us=200_000))
    second = history.second(T)
    assert second is not None
    assert (second.spec, second.plain, second.prefill) == pytest.approx((0.4, 0.3, 0.2), abs=1e-6)
    assert second.queue == 2


def test_after_idling_a_step_began_when_its_own_stages_did() -> None:
    history = History()
    history.add(made.step(1, 2, t=T + 0.5))
    history.add(made.step(2, 2, t=T + 60.5, round_us=0))
    seconds = list(history.between(T + 1, T + 61))
    assert [second.number - T for second in seconds] == [60]


def test_idle_seconds_are_known_to_be_empty_and_silent_ones_are_not_known() -> None:
    history = History()
    for beat in range(4):
        history.hear(T + beat * 1.02)
    assert [second.emitted for second in history.between(T, T + 4)] == [0, 0, 0, 0]
    history.hear(T + 20.0)
    assert [history.second(T + n) is None for n in (3, 4, 10, 19, 20)] == [False, True, True, True, False]


def test_lost_steps_mark_the_seconds_in_which_they_are_missing() -> None:
    """B88: the sums there are too low, so they are not shown as if they were right."""
    history = History()
    history.add(made.step(1, 2, t=T + 0.5))
    history.lose(30)
    history.add(made.step(32, 2, t=T + 2.2))
    history.add(made.step(33, 2, t=T + 3.2, round_us=100_000))
    assert [second.is_lossy for second in history.between(T, T + 4)] == [True, True, True, False]
    assert [(moment.kind, moment.text) for moment in history.moments] == [("gap", "30 steps lost")]


def test_restart_is_marked_when_the_new_boot_speaks() -> None:
    history = History()
    history.add(made.step(40, 2, t=T + 0.5))
    history.restart("boot c0ffee00")
    history.add(made.step(1, 2, t=T + 5.5, round_us=0))
    assert [(moment.t, moment.kind) for moment in history.moments] == [(T + 5.5, "restart")]


def test_a_clock_set_back_far_starts_anew_and_a_little_does_not_break() -> None:
    """B101."""
    history = History()
    history.hear(T)
    history.add(made.step(1, 2, t=T - 5.0))
    assert history.second(T - 5) is not None
    history.hear(T - 10 * SECONDS)
    assert history.second(T) is None
    assert history.newest == T - 10 * SECONDS


def test_memory_is_bounded() -> None:
    """B103, B104: as many seconds as there were at first."""
    history = History(seconds=60)
    session = MadeSession()
    session.decode(200, 3)
    for item in session.items[1:]:
        if isinstance(item, type(made.step(1))):
            history.add(item)
    end = int(session.t)
    assert len(list(history.between(end - 1000, end + 1))) == 60
