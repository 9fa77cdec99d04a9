"""Who changed what, and what goes back by itself."""

from __future__ import annotations

from probes.events import KnobRevert
from tests.workbench import made_events as made
from workbench.tui.audit_trail import KEPT, AuditTrail


def trail(**hello: object) -> AuditTrail:
    made_trail = AuditTrail()
    made_trail.take_hello(made.hello(**hello))
    return made_trail


def test_changes_and_the_last_one_of_a_knob() -> None:
    audit = trail()
    first = made.knob_change(5, {"threshold": 4}, {"threshold": 6}, epoch=1)
    second = made.knob_change(9, {"spec": "auto"}, {"spec": "off"}, epoch=2)
    audit.take(first)
    audit.take(second)
    assert (audit.last_change("threshold"), audit.last_change("spec"), audit.newest) == (first, second, second)
    assert audit.last_change("topk") is None
    assert audit.at_start["threshold"] == 4
    assert audit.is_whole


def test_a_screen_that_opens_late_knows_the_start_only_if_the_engine_still_has_its_first_hello() -> None:
    now = made.hello(knobs=made.knobs(threshold=6), knob_epoch=1, seq=0)
    change = made.knob_change(5, {"threshold": 4}, {"threshold": 6}, epoch=1)
    told = trail()
    told.take(change)
    told.take_hello(now)
    assert (told.at_start["threshold"], told.is_whole, list(told.changes)) == (4, True, [change])
    late = AuditTrail()
    late.take_hello(now)
    assert (late.at_start["threshold"], late.is_whole) == (6, False)


def test_an_event_that_comes_twice_is_one_change() -> None:
    audit = trail()
    change = made.knob_change(5, {"threshold": 4}, {"threshold": 6})
    audit.take(change)
    audit.take(change)
    assert list(audit.changes) == [change]


def test_a_timed_change_waits_until_its_knob_changes() -> None:
    audit = trail()
    timed = made.knob_change(5, {"threshold": 4}, {"threshold": 6}, revert_at=made.T0 + 900, back_to={"threshold": 4})
    audit.take(timed)
    assert audit.waits_for(timed) == made.T0 + 900
    assert audit.reverts["threshold"].back_to == 4
    audit.take(made.knob_change(9, {"threshold": 6}, {"threshold": 5}, epoch=2))
    assert audit.waits_for(timed) is None
    assert audit.reverts == {}


def test_a_hello_tells_what_waits() -> None:
    audit = trail(reverts=[KnobRevert(knob="spec", back_to="auto", t=made.T0 + 60)])
    assert audit.reverts["spec"].t == made.T0 + 60


def test_after_a_restart_the_changes_are_history() -> None:
    audit = trail()
    change = made.knob_change(5, {"threshold": 4}, {"threshold": 6})
    audit.take(change)
    audit.restart("c0ffee00")
    audit.take_hello(made.hello(boot_id="c0ffee00", knobs=made.knobs(threshold=2)))
    assert not audit.is_of_now(change)
    assert audit.last_change("threshold") is None
    assert audit.at_start["threshold"] == 2
    assert list(audit.changes) == [change]


def test_the_trail_is_bounded() -> None:
    audit = trail()
    for epoch in range(1, 2 * KEPT):
        audit.take(made.knob_change(epoch, {"threshold": epoch}, {"threshold": epoch + 1}, epoch=epoch))
    assert len(audit.changes) == KEPT
