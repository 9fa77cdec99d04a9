"""The knob board: one epoch a change, compare-and-set, and refusals that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from probes.control import Applied, Refused, SetKnobs
from probes.events import KnobEvent
from probes.knob_board import KnobBoard
from probes.knobs import KnobError, Knobs


def change(changes: dict[str, Any], **fields: Any) -> SetKnobs:
    return SetKnobs(request_id="r1", changes=changes, **fields)


def test_a_change_is_one_epoch_and_one_event() -> None:
    events: list[KnobEvent] = []
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
    assert len(events) == 1
    assert (events[0].step, events[0].t, events[0].knob_epoch) == (41, 5.0, 1)
    assert (events[0].who, events[0].why, events[0].boot_id) == ("ada", "load test", "b")
    assert (events[0].old, events[0].new) == (reply.old, reply.new)


def test_setting_what_is_set_opens_no_epoch() -> None:
    events: list[KnobEvent] = []
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
    ],
)
def test_refusals_change_nothing(request_: SetKnobs, code: str) -> None:
    def no_draft(knobs: Knobs) -> None:
        if knobs.spec == "on":
            raise KnobError("spec=on needs a draft model; start the engine with --draft-model")

    events: list[KnobEvent] = []
    board = KnobBoard(Knobs(), validate=no_draft, publish=events.append)
    reply = board.apply(request_, step=1)
    assert isinstance(reply, Refused)
    assert (reply.request_id, reply.code) == ("r1", code)
    assert (board.knobs, board.knob_epoch, events) == (Knobs(), 0, [])
