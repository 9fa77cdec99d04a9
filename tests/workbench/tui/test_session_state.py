"""What the screen knows, item by item."""

from __future__ import annotations

import pytest

from probes.subscriber import Gap, Malformed, Restart
from tests.workbench import made_events as made
from workbench.tui.feed import FeedItem, Gone
from workbench.tui.session_state import Connection, SessionState
from workbench.tui.timeline import Mark


def after(*items: FeedItem, now: float = 1000.0) -> SessionState:
    state = SessionState()
    for item in items:
        state.apply(item, now)
    return state


def marks(state: SessionState) -> list[Mark]:
    return [entry for entry in state.timeline if isinstance(entry, Mark)]


def test_connection_from_waiting_to_gone() -> None:
    state = SessionState()
    assert state.connection(0.0) is Connection.WAITING
    state.apply(made.hello(), 1000.0)
    state.apply(made.step(1), 1000.0)
    assert state.connection(1000.0) is Connection.LIVE
    state.apply(made.heartbeat(stage="idle"), 1001.0)
    assert state.connection(1001.0) is Connection.IDLE
    assert state.connection(1004.5) is Connection.STALE
    state.apply(Gone("process 7 has ended"), 1005.0)
    assert state.connection(1005.0) is Connection.GONE
    state.apply(made.heartbeat(2, stage="idle"), 1006.0)
    assert state.connection(1006.0) is Connection.IDLE


def test_idle_and_hung_differ() -> None:
    idle = after(made.step(1), made.heartbeat(stage="idle", stage_s=60.0))
    hung = after(made.step(1), made.heartbeat(stage="run", stage_s=60.0))
    assert idle.connection(1000.0) is Connection.IDLE
    assert hung.connection(1000.0) is Connection.BUSY
    assert hung.stage_seconds(1000.0) == 60.0
    assert idle.mode_word(1000.0) == "IDLE"


@pytest.mark.parametrize(
    ("step", "word"),
    [
        (made.step(1, 2), "SPEC"),
        (made.step(1, 9), "PLAIN"),
        (made.prefill(1), "PREFILL"),
        (made.step(1, 2, mode="mixed"), "MIXED"),
    ],
)
def test_mode_in_words(step: FeedItem, word: str) -> None:
    state = after(step)
    assert state.mode_word(1000.0) == word
    assert state.mode_word(1010.0) == "-", "old news is not the mode of now"


def test_skewed_clocks_give_sane_ages() -> None:
    """B101: the engine's clock is hours away from ours, in either direction."""
    for skew in (-7200.0, 7200.0):
        state = SessionState()
        for number in range(20):
            state.apply(made.step(number, t=made.T0 + skew + number * 0.1), 50.0 + number * 0.1)
        assert state.acceptance(52.0).value is not None
        assert state.tokens_per_second(52.0) == pytest.approx(70, rel=0.1)
        late = state.acceptance(112.0)
        assert late.value is None
        assert late.age == pytest.approx(60.1, abs=0.2)


def test_acceptance_over_sixty_plain_seconds() -> None:
    """B61: with speculation off the panel says no data and how old the last value is."""
    state = after(*(made.step(number, 3) for number in range(1, 20)))
    assert state.acceptance(1000.0).value is not None
    for second in range(60):
        state.apply(made.step(20 + second, 9, t=made.T0 + 2.0 + second), 1000.0 + second)
    acceptance = state.acceptance(1060.0)
    assert acceptance.value is None
    assert acceptance.last == pytest.approx(1 + 4 / 3)
    assert 58 < acceptance.age < 64


def test_lost_events_are_counted_and_marked_and_recovered_ones_are_not_lost() -> None:
    """B88: the gap shows."""
    state = after(made.step(1), Gap("step", 2, 6, recovered=False), Gap("step", 7, 9, recovered=True), made.step(10))
    assert state.lost_total == 5
    assert state.lost["step"] == 5
    assert state.recovered == 3
    assert state.lost_recently(1003.0)
    assert not state.lost_recently(1010.0)
    assert [mark.text for mark in marks(state)] == ["lost 5 step events, numbers 2 to 6"]


def test_restart_is_not_a_gap() -> None:
    """B89: a new boot forgets the old one's step and rates, and is marked."""
    state = after(made.hello(), made.step(40), Restart("old", "new"))
    assert state.restarts == 1
    assert state.lost_total == 0
    assert state.last_step is None
    assert state.tokens_per_second(1000.0) is None
    state.apply(made.step(1, t=made.T0 - 500), 1001.0)
    assert state.mode_word(1001.0) == "SPEC"


def test_malformed_message_is_counted() -> None:
    """B116: it is a row of its own, nothing more."""
    state = after(made.step(1), Malformed("payload of 3 bytes is not a step event", 3, "step", 2), made.step(3))
    assert state.malformed == 1
    assert state.connection(1000.0) is Connection.LIVE
    assert marks(state)[0].kind == "malformed"


def test_knob_change_moves_the_values_and_the_epoch() -> None:
    state = after(made.hello(), made.knob_change(5, {"threshold": 4}, {"threshold": 2}, why="test"))
    assert state.knobs["threshold"] == 2
    assert state.knobs["spec"] == "auto"
    assert state.knob_epoch == 1
    assert marks(state)[0].text == "threshold 4 → 2 from step 5 by ann (test)"
    assert state.knob_values is not None
    assert state.knob_values.resume_at == 2


def test_a_step_that_flew_when_the_knobs_changed_takes_back_no_epoch() -> None:
    """With the overlap scheduler it lands, and is said, behind the change."""
    state = after(made.hello(), made.step(4, 2), made.knob_change(6, {"threshold": 4}, {"threshold": 2}))
    state.apply(made.step(5, 2, knob_epoch=0), 1000.0)
    assert state.knob_epoch == 1
    assert state.acceptance(1000.0).value is None
    assert state.acceptance(1000.0).last == 2.5


def test_knobs_of_a_newer_engine_do_not_break_anything() -> None:
    state = after(made.hello(knobs={**made.knobs(), "warp": 9}))
    assert state.knobs["warp"] == 9
    assert state.knob_values is None


def test_after_a_restart_no_knob_of_the_old_boot_is_believed() -> None:
    """B89: until the new boot has said its knobs there are none; its changes are not those of the old one."""
    state = after(made.hello(), made.knob_change(5, {"threshold": 4}, {"threshold": 9}), made.step(6, 3, knob_epoch=1))
    state.apply(Restart(made.BOOT, "c0ffee00"), 1000.0)
    assert state.knobs == {}
    assert state.last_step is None
    state.apply(made.hello(boot_id="c0ffee00"), 1000.0)
    assert state.knobs["threshold"] == 4
    assert state.trail.newest is not None
    assert not state.trail.is_of_now(state.trail.newest)
