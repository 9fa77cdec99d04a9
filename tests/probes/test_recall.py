"""Recall: what was before a subscriber came, without disturbing what comes after."""

from __future__ import annotations

import pytest

from probes.control import SetKnobs
from probes.endpoints import Endpoints
from probes.events import HelloEvent, KnobEvent, StepEvent
from probes.knob_board import KnobBoard
from probes.knobs import Knobs
from probes.subscriber import Restart, Subscriber
from tests.probes.fake_engine import poll_until, running, steps_in


def test_recall_ends_where_the_subscription_begins(endpoints: Endpoints) -> None:
    """B90: what was before is recalled, what is after comes, nothing twice and nothing never."""
    with running(endpoints) as engine:
        engine.publish_steps(50)
        with Subscriber(endpoints, ["step"]) as subscriber:
            engine.publish_steps(5)
            past = subscriber.recall("step", 20)
            items = poll_until(subscriber, lambda items: len(items) >= 5)
            assert steps_in([*past]) == list(range(31, 51))
            assert steps_in(items) == list(range(51, 56))
            assert len(items) == 5, "no gap is said"
            assert subscriber.recall("step", 20) == past, "as often as one likes"
            assert steps_in([*subscriber.recall("step", 1000)]) == list(range(1, 51))
            assert steps_in(poll_until(subscriber, lambda items: True)) == []


def test_recall_of_a_full_ring_is_what_it_holds(endpoints: Endpoints) -> None:
    with running(endpoints, ring=700) as engine:
        engine.publish_steps(2000)
        with Subscriber(endpoints, ["step"]) as subscriber:
            # A ring that is still being filled holds other steps from one moment to the next.
            poll_until(subscriber, lambda _: engine.bus._replays.last_sent.get("step") == 2000)
            assert steps_in([*subscriber.recall("step", 1500)]) == list(range(1301, 2001))


def test_recall_waits_for_what_is_only_numbered_yet(endpoints: Endpoints) -> None:
    """An engine with much to send has given out numbers that its ring does not hold at once."""
    with running(endpoints, outbox=100_000) as engine:
        engine.publish_steps(4000)
        with Subscriber(endpoints, ["step"]) as subscriber:
            newest = subscriber.hello.last_seqs["step"]
            assert newest == 4000
            assert steps_in([*subscriber.recall("step", 10)]) == list(range(newest - 9, newest + 1))


def test_recall_of_topics_that_nobody_subscribes_to(endpoints: Endpoints) -> None:
    with running(endpoints) as engine:
        board = KnobBoard(Knobs(), boot_id=engine.boot_id, publish=engine.bus.publish, t=engine.bus.t)
        for threshold in (5, 6, 7):
            board.apply(SetKnobs(changes={"threshold": threshold}), 1)
        with Subscriber(endpoints, ["step"]) as subscriber:
            changes = [event for event in subscriber.recall("knob", 2) if isinstance(event, KnobEvent)]
            assert [change.new["threshold"] for change in changes] == [6, 7]
            (hello,) = subscriber.recall("hello", 9)
            assert isinstance(hello, HelloEvent)
            assert subscriber.recall("alert", 9) == []
            assert subscriber.recall("step", 0) == []
            with pytest.raises(ValueError, match="unknown topic 'steps'"):
                subscriber.recall("steps", 9)


def test_nothing_is_recalled_of_an_engine_that_restarted(endpoints: Endpoints) -> None:
    """B89: all of the new boot comes by itself; its numbers mean other events than the old one's."""
    with running(endpoints, "boot-1") as engine:
        engine.publish_steps(20)
        subscriber = Subscriber(endpoints, ["step"])
    with subscriber, running(endpoints, "boot-2") as engine:
        engine.publish_steps(7)
        items = poll_until(subscriber, lambda items: bool(items) and isinstance(items[-1], StepEvent))
        assert isinstance(items[0], Restart)
        assert subscriber.recall("step", 100) == []
