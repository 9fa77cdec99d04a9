"""The live feed against a real bus."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec
import pytest

from probes.events import AlertEvent, HeartbeatEvent, HelloEvent, KnobEvent, StepEvent
from probes.subscriber import Restart, Subscriber
from tests.workbench import made_events as made
from tests.workbench.conftest import MakeEngine
from tests.workbench.made_engine import MadeEngine
from workbench.tui.bus_feed import BusFeed
from workbench.tui.bus_steering import BusSteering
from workbench.tui.feed import FeedItem, Gone
from workbench.tui.session_state import Connection, SessionState
from workbench.tui.steering import SteeringError

PATIENCE_S = 30.0


class Follower:
    """Drains a feed into a state, as the screen does."""

    def __init__(self, feed: BusFeed) -> None:
        self.feed = feed
        self.state = SessionState()
        self.items: list[FeedItem] = []
        feed.start()

    def until(self, condition: Callable[[], bool]) -> None:
        """Drain until the condition holds."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for item in self.feed.drain():
                self.items.append(item)
                self.state.apply(item, time.monotonic())
            if condition():
                return
            assert time.monotonic() < deadline, f"never came true; {len(self.items)} items, the last {self.items[-3:]}"
            time.sleep(0.005)

    def steps(self) -> list[int]:
        return [item.step for item in self.items if isinstance(item, StepEvent)]


Follow = Callable[[MadeEngine], Follower]


@pytest.fixture
def follow() -> Iterator[Follow]:
    followers: list[Follower] = []

    def start(engine: MadeEngine) -> Follower:
        followers.append(Follower(BusFeed(engine.record)))
        return followers[-1]

    yield start
    for follower in followers:
        follower.feed.close()


def test_hello_comes_first_and_then_every_step(engine: MadeEngine, follow: Follow) -> None:
    follower = follow(engine)
    follower.until(lambda: follower.state.hello is not None)
    for _ in range(500):
        engine.step()
    follower.until(lambda: len(follower.steps()) >= 500)
    assert follower.steps() == list(range(1, 501))
    assert follower.state.lost_total == 0
    assert follower.state.connection(time.monotonic()) is Connection.LIVE


def test_what_was_before_comes_first_in_order(engine: MadeEngine, follow: Follow) -> None:
    """A late screen is told the past as if it had been there: the first hello, changes and steps by their time, then
    the hello of now, then what happens."""
    for threshold in (2, 3):
        BusSteering(engine.record).set_knobs({"threshold": threshold}, {}, "test")
        for _ in range(10):
            engine.step()
    engine.idle()
    engine.publish(made.alert("before", boot_id=engine.boot_id, t=engine.bus.t()))
    follower = follow(engine)
    follower.until(lambda: follower.state.hello is not None and follower.state.hello.knob_epoch == 2)
    engine.step()
    follower.until(lambda: follower.steps()[-1:] == [21])
    assert follower.steps() == list(range(1, 22)), "nothing twice"
    happened = [item for item in follower.items if isinstance(item, HelloEvent | KnobEvent | AlertEvent)]
    assert [type(item) for item in happened] == [HelloEvent, KnobEvent, KnobEvent, AlertEvent, HelloEvent]
    first, last = happened[0], happened[-1]
    assert isinstance(first, HelloEvent)
    assert isinstance(last, HelloEvent)
    assert (first.knob_epoch, last.knob_epoch) == (0, 2)
    at = [index for index, item in enumerate(follower.items) if isinstance(item, KnobEvent | StepEvent)]
    order = [type(follower.items[index]) for index in at]
    assert order == [KnobEvent, *[StepEvent] * 10, KnobEvent, *[StepEvent] * 11]
    assert follower.state.lost_total == 0
    assert follower.state.knobs["threshold"] == 3


def test_a_late_screen_opens_with_two_thousand_steps_at_most(engine: MadeEngine, follow: Follow) -> None:
    """And it knows at once that the engine idles, not at the next heartbeat."""
    for _ in range(2500):
        engine.step()
    engine.idle()
    beaten = Subscriber(engine.record, ("heartbeat",))
    with beaten:
        deadline = time.monotonic() + PATIENCE_S
        while not any(isinstance(item, HeartbeatEvent) and item.stage == "idle" for item in beaten.poll(0.1)):
            assert time.monotonic() < deadline
    follower = follow(engine)
    follower.until(lambda: sum(isinstance(item, HelloEvent) for item in follower.items) == 2)
    assert follower.steps() == list(range(501, 2501))
    before_now = follower.items[: [type(item) for item in follower.items].index(HelloEvent, 1)]
    assert isinstance(before_now[-1], HeartbeatEvent)
    assert before_now[-1].stage == "idle"


def test_idle_engine_is_idle_by_its_heartbeats(engine: MadeEngine, follow: Follow) -> None:
    follower = follow(engine)
    engine.step()
    engine.idle()
    follower.until(lambda: follower.state.is_idle)
    assert follower.state.mode_word(time.monotonic()) == "IDLE"


def test_knob_change_by_steering_comes_back_on_the_bus(engine: MadeEngine, follow: Follow) -> None:
    follower = follow(engine)
    follower.until(lambda: follower.state.knobs != {})
    applied = BusSteering(engine.record).set_knobs({"spec": "off"}, {"spec": "auto"}, "test")
    assert (applied.old, applied.new, applied.step) == ({"spec": "auto"}, {"spec": "off"}, 1)
    follower.until(lambda: follower.state.knobs["spec"] == "off")
    assert follower.state.knob_epoch == 1


def test_steering_refusals_are_words(engine: MadeEngine) -> None:
    steering = BusSteering(engine.record)
    with pytest.raises(SteeringError, match=r"spec is 'auto', not 'on'.*nothing was changed.*conflict"):
        steering.set_knobs({"spec": "off"}, {"spec": "on"}, "")
    with pytest.raises(SteeringError, match="unknown knob 'warp'"):
        steering.set_knobs({"warp": 9}, {}, "")


def test_engine_that_restarts_under_its_name_is_followed(make_engine: MakeEngine, follow: Follow) -> None:
    """B96, B89: no operator does anything."""
    first = make_engine(boot_id="aaaa")
    follower = follow(first)
    follower.until(lambda: follower.state.hello is not None)
    first.step()
    follower.until(lambda: follower.steps() == [1])
    first.close()
    second = make_engine(boot_id="bbbb")
    follower.until(lambda: any(isinstance(item, Restart) for item in follower.items))
    second.step()
    follower.until(lambda: follower.steps() == [1, 1])
    assert follower.state.restarts == 1
    assert follower.state.lost_total == 0


def test_engine_that_does_not_answer_is_gone_and_then_found(make_engine: MakeEngine, follow: Follow) -> None:
    """B116: no engine at start is a state of the screen, not its end."""
    gone = make_engine()
    gone.close()
    # The record says a process that is not there.
    dead = msgspec.structs.replace(gone.record, pid=2**22 + 1, start_time=1)
    follower = Follower(BusFeed(dead))
    follower.until(lambda: any(isinstance(item, Gone) for item in follower.items))
    assert follower.state.connection(time.monotonic()) is Connection.GONE
    assert "has ended" in follower.state.gone_because
    engine = make_engine()
    follower.until(lambda: follower.state.hello is not None)
    engine.step()
    follower.until(lambda: follower.steps() == [1])
    follower.feed.close()


@pytest.mark.parametrize("load", ["silent", "flood"])
def test_close_returns_soon(engine: MadeEngine, follow: Follow, load: str) -> None:
    """B111: with a silent and with a flooding bus; the deadline leaves room for a busy machine."""
    follower = follow(engine)
    follower.until(lambda: follower.state.hello is not None)
    if load == "flood":
        for _ in range(20_000):
            engine.step()
    start = time.monotonic()
    follower.feed.close()
    assert time.monotonic() - start < 10.0


def test_a_bug_in_the_reader_reaches_the_screen(engine: MadeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """B116: a thread does not die silently."""

    def broken(*args: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("workbench.tui.bus_feed.Subscriber.poll", broken)
    follower = Follower(BusFeed(engine.record))
    with pytest.raises(RuntimeError, match="boom"):
        follower.until(lambda: False)
