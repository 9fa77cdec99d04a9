"""The knob board: one epoch a change, compare-and-set, changes that end by themselves, refusals that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from probes.control import Applied, Refused, SetKnobs
from probes.events import AlertEvent, KnobEvent, KnobRevert
from probes.knob_board import KnobBoard
from probes.knobs import KnobError, Knobs


class Board(KnobBoard):
    """A board with a clock of its own and its events at hand."""

    def __init__(self, knobs: Knobs | None = None, now: float = 1000.0) -> None:
        self.now = now
        self.events: list[KnobEvent | AlertEvent] = []
        super().__init__(knobs or Knobs(), t=lambda: self.now, publish=self.events.append)

    def set(self, after: float | None = None, who: str = "ada", why: str = "", **changes: Any) -> Applied:
        reply = self.apply(change(changes, revert_after_s=after, who=who, why=why), 7)
        assert isinstance(reply, Applied), reply
        return reply

    def later(self, seconds: float) -> None:
        self.now += seconds
        self.take_back_due(9)

    @property
    def last(self) -> KnobEvent:
        event = self.events[-1]
        assert isinstance(event, KnobEvent)
        return event


def change(changes: dict[str, Any], **fields: Any) -> SetKnobs:
    return SetKnobs(request_id="r1", changes=changes, **fields)


def test_a_change_is_one_epoch_and_one_event() -> None:
    events: list[KnobEvent | AlertEvent] = []
    board = KnobBoard(Knobs(), boot_id="b", t=lambda: 5.0, publish=events.append)
    reply = board.apply(change({"threshold": "8", "spec": "on"}, who="ada", why="load test"), step=41)
    assert reply == Applied(
        request_id="r1",
        old={"threshold": 4, "spec": "auto"},
        new={"threshold": 8, "spec": "on"},
        step=41,
        knob_epoch=1,
    )
    assert (board.knobs.threshold, board.knobs.spec) == (8, "on")
    (event,) = events
    assert isinstance(event, KnobEvent)
    assert (event.step, event.t, event.knob_epoch) == (41, 5.0, 1)
    assert (event.who, event.why, event.boot_id) == ("ada", "load test", "b")
    assert (event.old, event.new) == (reply.old, reply.new)
    assert (event.revert_at, event.back_to) == (None, {})


def test_setting_what_is_set_opens_no_epoch() -> None:
    events: list[KnobEvent | AlertEvent] = []
    board = KnobBoard(Knobs(), publish=events.append)
    reply = board.apply(change({"threshold": 4}), step=3)
    assert isinstance(reply, Applied)
    assert (reply.old, reply.new, reply.knob_epoch) == ({"threshold": 4}, {"threshold": 4}, 0)
    assert events == []


def test_expectation_that_does_not_hold_is_a_conflict_naming_the_last_one_to_change_it() -> None:
    board = KnobBoard(Knobs())
    board.apply(change({"threshold": 8}, who="ada"), step=1)
    reply = board.apply(change({"threshold": 2}, expect={"threshold": 4}, who="bob"), step=2)
    assert isinstance(reply, Refused)
    assert (reply.code, reply.found) == ("conflict", {"threshold": 8})
    assert reply.message == "threshold is 8, not 4; last changed by ada; nothing was changed"
    assert board.knobs.threshold == 8
    assert isinstance(board.apply(change({"threshold": 2}, expect={"threshold": "8", "spec": "auto"}), 3), Applied)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (change({}), "bad_value"),
        (change({"nope": 1}), "unknown_knob"),
        (change({"threshold": 5}, expect={"nope": 1}), "unknown_knob"),
        (change({"threshold": 5}, expect={"spec": "?"}), "bad_value"),
        (change({"threshold": 5, "steps": 99}), "bad_value"),
        (change({"topk": 1}), "inconsistent"),
        (change({"spec": "on"}), "unsupported"),
        (change({"threshold": 5}, revert_after_s=0.5), "bad_value"),
        (change({"threshold": 5}, revert_after_s=604_801.0), "bad_value"),
        (change({"threshold": 5}, revert_after_s=float("nan")), "bad_value"),
        (change({"threshold": 5}, revert_after_s=float("inf")), "bad_value"),
    ],
)
def test_refusals_change_nothing(request_: SetKnobs, code: str) -> None:
    def no_draft(knobs: Knobs) -> None:
        if knobs.spec == "on":
            raise KnobError("spec=on needs a draft model; start the engine with --draft-model")

    events: list[KnobEvent | AlertEvent] = []
    board = KnobBoard(Knobs(), validate=no_draft, publish=events.append)
    reply = board.apply(request_, step=1)
    assert isinstance(reply, Refused)
    assert (reply.request_id, reply.code) == ("r1", code)
    assert (board.knobs, board.knob_epoch, events) == (Knobs(), 0, [])


def test_a_change_for_a_while_is_taken_back_as_one_epoch() -> None:
    board = Board()
    reply = board.set(900, why="load test", threshold=2, spec="on")
    assert (reply.revert_at, reply.back_to) == (1900.0, {"threshold": 4, "spec": "auto"})
    assert (board.last.revert_at, board.last.back_to) == (reply.revert_at, reply.back_to)
    assert board.reverts == [
        KnobRevert(knob="threshold", back_to=4, t=1900.0, who="ada", why="load test"),
        KnobRevert(knob="spec", back_to="auto", t=1900.0, who="ada", why="load test"),
    ]
    board.later(899)
    assert (board.knobs.threshold, board.next_revert_in) == (2, 1.0)
    board.later(1)
    assert (board.knobs, board.knob_epoch, board.reverts, board.next_revert_in) == (Knobs(), 2, [], None)
    assert (board.last.old, board.last.new) == ({"threshold": 2, "spec": "on"}, {"threshold": 4, "spec": "auto"})
    assert (board.last.step, board.last.knob_epoch, board.last.who) == (9, 2, "engine")
    assert board.last.why == "revert, 15 min after ada set threshold to 2, spec to on (load test)"
    assert board.history[-1].why == board.last.why
    board.later(10_000)
    assert len(board.events) == 2, "once"


def test_what_somebody_changed_since_is_left_alone() -> None:
    board = Board()
    board.set(900, threshold=2, spec="on")
    board.set(who="bob", threshold=8)
    assert [revert.knob for revert in board.reverts] == ["spec"]
    board.later(900)
    assert (board.knobs.threshold, board.knobs.spec) == (8, "auto")
    assert board.last.new == {"spec": "auto"}
    assert board.last.why.endswith("; threshold left alone, changed since")


def test_a_later_change_of_all_of_it_leaves_nothing_to_take_back() -> None:
    board = Board()
    board.set(900, threshold=2)
    board.set(threshold=8)
    assert board.reverts == []
    board.later(900)
    assert (board.knobs.threshold, board.knob_epoch) == (8, 2)


def test_setting_the_passing_value_again_keeps_it() -> None:
    """The value stays, the epoch too; that it stays for good is news all the same."""
    board = Board()
    board.set(900, threshold=2)
    reply = board.set(who="bob", threshold=2)
    assert (reply.old, reply.new, reply.knob_epoch, reply.revert_at) == ({"threshold": 2}, {"threshold": 2}, 1, None)
    assert (board.last.who, board.last.old, board.last.new) == ("bob", {"threshold": 2}, {"threshold": 2})
    assert (board.last.knob_epoch, board.last.revert_at, board.last.back_to) == (1, None, {})
    board.later(900)
    assert board.knobs.threshold == 2


def test_a_passing_value_is_nothing_to_go_back_to() -> None:
    """2 for a while, then 3 for a while: both end at the 4 that was meant to stay."""
    board = Board()
    board.set(900, threshold=2)
    assert board.set(100, threshold=3).back_to == {"threshold": 4}
    board.later(100)
    assert board.knobs.threshold == 4
    board.later(1000)
    assert (board.knobs.threshold, board.knob_epoch) == (4, 3)


def test_the_time_can_be_moved() -> None:
    board = Board()
    board.set(900, threshold=2)
    assert board.set(1800, threshold=2).revert_at == 2800.0
    board.later(900)
    assert board.knobs.threshold == 2
    board.later(900)
    assert board.knobs.threshold == 4


def test_equal_values_leave_nothing_to_take_back() -> None:
    board = Board()
    reply = board.set(900, threshold=4, spec="auto")
    assert (reply.revert_at, reply.back_to, board.reverts, board.events) == (None, {}, [], [])
    assert board.set(900, threshold=2, spec="auto").back_to == {"threshold": 4}


def test_changes_of_two_people_end_in_their_order() -> None:
    board = Board()
    board.set(900, threshold=2)
    board.set(100, who="bob", spec="off")
    assert [(revert.knob, revert.t) for revert in board.reverts] == [("spec", 1100.0), ("threshold", 1900.0)]
    board.later(2000)
    assert (board.knobs, board.knob_epoch) == (Knobs(), 4)


def test_going_back_to_what_fits_no_more_changes_nothing_and_is_an_alert() -> None:
    """A chain was made a tree for a while, and somebody has grown the tree: one cannot be a chain of 10 tokens."""
    board = Board(Knobs(topk=1, steps=2, draft_tokens=3))
    board.set(900, topk=4, draft_tokens=16)
    board.set(who="bob", draft_tokens=10)
    board.later(900)
    assert (board.knobs.topk, board.knobs.draft_tokens, board.reverts) == (4, 10, [])
    alert = board.events[-1]
    assert isinstance(alert, AlertEvent)
    assert (alert.code, alert.data["back_to"]) == ("revert_failed", {"topk": 1})
    assert "draft_tokens must be steps + 1 = 3" in alert.message
