"""The subscriber: joins without losing anything, and says what it lost later and whether it came back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import pytest
import zmq

from probes.control import ControlTimeout
from probes.endpoints import Endpoints
from probes.events import AlertEvent, HeartbeatEvent, HelloEvent, RequestRow, RowsEvent, StepEvent
from probes.subscriber import Gap, Malformed, Received, Subscriber
from probes.wire import encode_event, pack
from tests.probes.fake_engine import DEADLINE_S, poll_until, running, steps_in


def has_step(seq: int) -> Callable[[list[Received]], bool]:
    return lambda items: seq in steps_in(items[-1:]) or seq in steps_in(items)


def test_slow_joiner_misses_nothing(endpoints: Endpoints) -> None:
    """B90: 100 times, a subscriber that has only just been made gets the very next event, and no gap."""
    with running(endpoints) as engine:
        for _ in range(100):
            with Subscriber(endpoints, ["step"]) as subscriber:
                engine.publish_steps(1)
                items = poll_until(subscriber, lambda items: bool(items))
            assert steps_in(items) == [engine.step]
            assert len(items) == 1


def test_joining_a_busy_engine_misses_nothing(endpoints: Endpoints) -> None:
    """B90: under a stream of steps every one after the handshake arrives, in order."""
    with running(endpoints) as engine:
        stop = threading.Event()

        def publish() -> None:
            while not stop.is_set():
                engine.publish_steps(1)
                time.sleep(0.0005)

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            for _ in range(10):
                with Subscriber(endpoints, ["step"]) as subscriber:
                    first = subscriber.hello.last_seqs.get("step", 0) + 1
                    items = poll_until(subscriber, lambda items: len(items) >= 20)
                assert steps_in(items) == list(range(first, first + len(items)))
        finally:
            stop.set()
            thread.join()


def test_no_engine_is_an_error_with_advice(endpoints: Endpoints) -> None:
    with pytest.raises(ControlTimeout, match="no socket at that path"):
        Subscriber(endpoints, ["step"], timeout=0.1)


def test_unknown_topic_is_refused(endpoints: Endpoints) -> None:
    with pytest.raises(ValueError, match="unknown topic 'steps'; the topics are step, rows"):
        Subscriber(endpoints, ["steps"])


class Proxy(threading.Thread):
    """Stands between subscriber and engine, passes subscriptions up, and lets ``decide`` rewrite what comes down."""

    def __init__(self, front: str, back: str, decide: Callable[[list[bytes]], list[list[bytes]]]) -> None:
        super().__init__(daemon=True)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._decide = decide
        self._down = self._context.socket(zmq.XPUB)
        self._down.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._down.bind(front)
        self._up = self._context.socket(zmq.XSUB)
        self._up.connect(back)
        self._ended = threading.Event()

    def run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._up, zmq.POLLIN)
        poller.register(self._down, zmq.POLLIN)
        while not self._ended.is_set():
            ready = dict(poller.poll(20))
            if self._down in ready:
                self._up.send_multipart(self._down.recv_multipart())
            if self._up in ready:
                for frames in self._decide(self._up.recv_multipart()):
                    self._down.send_multipart(frames)
        self._context.destroy(linger=0)

    def stop(self) -> None:
        self._ended.set()
        self.join()


@contextmanager
def proxied(endpoints: Endpoints, decide: Callable[[list[bytes]], list[list[bytes]]]) -> Iterator[Endpoints]:
    """Endpoints whose events go through ``decide``."""
    front = endpoints.events.replace("events", "proxy")
    proxy = Proxy(front, endpoints.events, decide)
    proxy.start()
    try:
        yield msgspec.structs.replace(endpoints, events=front)
    finally:
        proxy.stop()


def drop_steps(first: int, last: int) -> Callable[[list[bytes]], list[list[bytes]]]:
    def decide(frames: list[bytes]) -> list[list[bytes]]:
        lost = frames[0] == b"step" and first <= int.from_bytes(frames[1], "big") <= last
        return [] if lost else [frames]

    return decide


def test_dropped_messages_are_fetched_again(endpoints: Endpoints) -> None:
    """B89: five messages lost on the way are one gap, recovered, and the events come in their place."""
    with (
        running(endpoints) as engine,
        proxied(endpoints, drop_steps(11, 15)) as through,
        Subscriber(through, ["step"]) as subscriber,
    ):
        engine.publish_steps(5)
        items = poll_until(subscriber, has_step(5))
        engine.publish_steps(15)
        items += poll_until(subscriber, has_step(20))
    assert steps_in(items) == list(range(1, 21))
    assert [item for item in items if not isinstance(item, StepEvent)] == [Gap("step", 11, 15, recovered=True)]
    assert items.index(Gap("step", 11, 15, recovered=True)) == 10


def test_lost_tail_shows_with_the_next_heartbeat(endpoints: Endpoints) -> None:
    """B89: the last messages before a silence are missed as well, although nothing follows them on their topic."""
    with (
        running(endpoints, heartbeat_s=0.05) as engine,
        proxied(endpoints, drop_steps(4, 6)) as through,
        Subscriber(through, ["step"]) as subscriber,
    ):
        engine.publish_steps(3)
        items = poll_until(subscriber, has_step(3))
        engine.publish_steps(3)
        items += poll_until(subscriber, has_step(6))
    assert steps_in(items) == [1, 2, 3, 4, 5, 6]
    assert Gap("step", 4, 6, recovered=True) in items


def test_unrecoverable_loss_is_a_gap_and_an_alert(endpoints: Endpoints) -> None:
    """B89: what the ring no longer has is said to the reader with exact numbers, and to everybody as an alert."""
    with (
        running(endpoints, ring=5, heartbeat_s=0.05) as engine,
        proxied(endpoints, drop_steps(4, 30)) as through,
        Subscriber(endpoints, ["alert"]) as watcher,
        Subscriber(through, ["step"], who="the test") as subscriber,
    ):
        poll_until(subscriber, lambda _: subscriber.is_joined)
        engine.publish_steps(3)
        items = poll_until(subscriber, has_step(3))
        engine.publish_steps(30)
        items += poll_until(subscriber, has_step(33))
        alerts = poll_until(watcher, lambda items: bool(items))
    lost = [item for item in items if isinstance(item, Gap) and not item.recovered]
    assert lost[0].first == 4
    missing = {seq for gap in lost for seq in range(gap.first, gap.last + 1)}
    assert missing.isdisjoint(steps_in(items))
    assert missing.union(steps_in(items)) == set(range(1, 34))
    alert = alerts[0]
    assert isinstance(alert, AlertEvent)
    assert (alert.code, alert.data["who"], alert.data["topic"]) == ("subscriber_loss", "the test", "step")
    assert "the test lost" in alert.message


def test_stopped_reader_learns_what_it_lost_and_costs_nothing(endpoints: Endpoints) -> None:
    """B87, B88: a burst above the high-water marks of a subscriber that does not read neither blocks nor drops anything
    in the engine's queue, and afterwards received + lost is exactly what was sent."""
    count, padding = 600, "x" * 20_000
    with (
        running(endpoints, hwm=10, ring=50, heartbeat_s=0.05) as engine,
        Subscriber(endpoints, ["step"], hwm=10) as subscriber,
        Subscriber(endpoints, ["heartbeat"]) as watcher,
    ):
        assert subscriber.hwm == 10
        engine.publish_steps(count, reason_detail=padding)

        def all_sent(items: list[Received]) -> bool:
            beats = [item for item in items if isinstance(item, HeartbeatEvent)]
            return bool(beats) and beats[-1].last_seqs.get("step") == count

        beats = poll_until(watcher, all_sent)  # the engine is done, although one subscriber has not read a byte
        assert isinstance(beats[-1], HeartbeatEvent)
        assert beats[-1].dropped == 0
        items: list[Received] = []

        def accounted(received: list[Received]) -> bool:
            lost = sum(item.count for item in received if isinstance(item, Gap) and not item.recovered)
            return len(steps_in(received)) + lost >= count

        items = poll_until(subscriber, accounted)
    gaps = [item for item in items if isinstance(item, Gap) and not item.recovered]
    missing = [seq for gap in gaps for seq in range(gap.first, gap.last + 1)]
    assert missing, "this burst was meant to run over"
    assert sorted(missing + steps_in(items)) == list(range(1, count + 1))
    assert steps_in(items) == sorted(steps_in(items))
    assert all(isinstance(item, Gap | StepEvent) for item in items)


def test_malformed_messages_are_said_and_skipped(endpoints: Endpoints) -> None:
    """B89: wrong frame count, wrong number, bytes that are no event: each a clear item, and reading goes on."""

    def decide(frames: list[bytes]) -> list[list[bytes]]:
        seq = int.from_bytes(frames[1], "big")
        if frames[0] != b"step" or seq > 4:
            return [frames]
        return [
            [frames[:2]],
            [[frames[0], b"\x01", frames[2]]],
            [[*frames[:2], b"\xc1 not msgpack"]],
            [[*frames[:2], msgspec.msgpack.encode({"type": "step"})]],
        ][seq - 1]

    with (
        running(endpoints) as engine,
        proxied(endpoints, decide) as through,
        Subscriber(through, ["step"]) as subscriber,
    ):
        poll_until(subscriber, lambda _: subscriber.is_joined)  # so that nothing comes around the proxy, by replay
        engine.publish_steps(5)
        items = poll_until(subscriber, has_step(5))
    reasons = [item.reason for item in items if isinstance(item, Malformed)]
    assert reasons[0] == "got 2 frames, expected 3: topic, sequence number, payload"
    assert reasons[1] == "sequence number of 1 bytes, expected 8 (unsigned, big-endian)"
    assert any("is not a step event" in reason for reason in reasons[2:])
    assert any("missing required field" in reason for reason in reasons[2:])
    assert 5 in steps_in(items)


def test_newer_schema_still_decodes(endpoints: Endpoints) -> None:
    """B99: fields that this version has never heard of are skipped."""

    def decide(frames: list[bytes]) -> list[list[bytes]]:
        if frames[0] == b"step":
            payload = msgspec.msgpack.decode(frames[2])
            payload["flux"] = {"capacitor": [1.21, None]}
            payload["shapes"]["new_tensor"] = [3, 4]
            return [[*frames[:2], msgspec.msgpack.encode(payload)]]
        return [frames]

    with (
        running(endpoints) as engine,
        proxied(endpoints, decide) as through,
        Subscriber(through, ["step"]) as subscriber,
    ):
        poll_until(subscriber, lambda _: subscriber.is_joined)
        engine.publish_steps(2, requests=7)
        items = poll_until(subscriber, has_step(2))
    assert [item.requests for item in items if isinstance(item, StepEvent)] == [7, 7]
    assert len(items) == 2


def test_numbers_that_disagree_are_malformed() -> None:
    from probes.wire import Message, WireError, decode_event

    event = HeartbeatEvent(boot_id="b", t=0.0, stage="idle", stage_s=0.0, step=0)
    message = Message("heartbeat", 7, encode_event(event, 8))
    with pytest.raises(WireError, match="7 in the frame, 8 in the payload"):
        decode_event(message)
    assert pack("step", 258, b"")[1] == b"\0\0\0\0\0\0\1\2"


def test_rows_are_wanted_only_while_somebody_reads_them(endpoints: Endpoints) -> None:
    """Per-request rows cost nothing until a panel opens; the one who opens it gets them from then on."""

    def until_wanted(wanted: bool) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while engine.bus.wants("rows") is not wanted:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    with running(endpoints) as engine, Subscriber(endpoints, ["step"]) as subscriber:
        until_wanted(False)
        subscriber.subscribe("rows")
        until_wanted(True)
        row = RequestRow(request_id="r", width=1, committed=9, emitted=1, correct=None, draft_lag=0)
        engine.bus.publish(RowsEvent(boot_id=engine.boot_id, step=1, t=0.0, rows=[row]))
        items = poll_until(subscriber, lambda items: bool(items))
        assert isinstance(items[0], RowsEvent)
        assert items[0].rows == [row]
        subscriber.unsubscribe("rows")
        until_wanted(False)


def test_hello_and_heartbeats_come_to_those_who_ask(endpoints: Endpoints) -> None:
    with running(endpoints, heartbeat_s=0.05) as engine:
        engine.bus.stage("draft", 12)
        with Subscriber(endpoints, ["heartbeat", "hello"]) as subscriber:
            engine.bus.publish(engine.hello())
            items = poll_until(subscriber, lambda items: {type(item) for item in items} >= {HelloEvent, HeartbeatEvent})
    beat = next(item for item in items if isinstance(item, HeartbeatEvent))
    assert (beat.stage, beat.step) == ("draft", 12)
