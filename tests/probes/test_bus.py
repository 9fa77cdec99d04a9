"""The engine's end: binding, dropping, closing and forking."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import msgspec
import pytest
import zmq

from probes.endpoints import EndpointError, Endpoints
from probes.events import TOPICS, AlertEvent, DropEvent, HeartbeatEvent, StepEvent
from probes.subscriber import Gap, Subscriber
from tests.probes.fake_engine import DEADLINE_S, FakeEngine, poll_until, running, steps_in


def test_publish_costs_no_wait_and_overflow_is_said(endpoints: Endpoints) -> None:
    """A full outbox drops, counts and tells: what the drop event names is what did not come."""
    engine = FakeEngine(endpoints, outbox=100, heartbeat_s=0.05)
    engine.publish_steps(150)  # before the thread runs, so that nothing drains
    assert engine.bus.dropped == 50
    engine.bus.publish(AlertEvent(boot_id="boot-1", step=1, t=0.0, code="invariant", level="error", message="rare"))
    assert engine.bus.dropped == 50, "the rarer topics have room beyond the bulky ones'"
    engine.bus.start()
    try:
        with Subscriber(endpoints, ["step", "drop", "heartbeat"]) as subscriber:
            engine.publish_steps(1)
            items = poll_until(subscriber, lambda items: {StepEvent, HeartbeatEvent} <= {type(item) for item in items})
            assert steps_in(items) == [151]
            assert {item.dropped for item in items if isinstance(item, HeartbeatEvent)} == {50}
            drops = subscriber._replay.fetch("boot-1", "drop", 1, 10)
    finally:
        engine.bus.close()
    drop = msgspec.msgpack.decode(drops[0].payload, type=DropEvent)
    assert (drop.topic, drop.first_seq, drop.count, drop.total) == ("step", 101, 50, 50)


def test_late_reader_gets_the_hole_as_a_gap(endpoints: Endpoints) -> None:
    """Events dropped before sending have numbers too: readers see the hole, and nobody can fill it."""
    engine = FakeEngine(endpoints, outbox=10)
    with running(endpoints) as first, Subscriber(endpoints, ["step"]) as subscriber:
        poll_until(subscriber, lambda _: subscriber.is_joined)
        first.bus.close()
        engine = FakeEngine(endpoints, "boot-2", outbox=10)
        engine.publish_steps(15)
        engine.bus.start()
        try:
            items = poll_until(subscriber, lambda items: any(isinstance(item, Gap) for item in items))
        finally:
            engine.bus.close()
    assert steps_in(items) == list(range(1, 11))
    assert items[-1] == Gap("step", 11, 15, recovered=False)


def test_event_that_cannot_be_encoded_costs_only_itself(endpoints: Endpoints, caplog: pytest.LogCaptureFixture) -> None:
    """Somebody puts an object into an alert's data: the events beside it still arrive, and the hole is said."""
    with running(endpoints) as engine, Subscriber(endpoints, ["step", "alert", "drop"]) as subscriber:
        for data in ({"bad": object()}, {"good": 1}):
            engine.bus.publish(
                AlertEvent(boot_id="boot-1", step=1, t=0.0, code="invariant", level="info", message="", data=data)
            )
        engine.publish_steps(1)
        items = poll_until(subscriber, lambda items: {StepEvent, DropEvent} <= {type(item) for item in items})
    assert Gap("alert", 1, 1, recovered=False) in items
    assert [item.data for item in items if isinstance(item, AlertEvent)] == [{"good": 1}]
    drops = [item for item in items if isinstance(item, DropEvent)]
    assert [(drop.topic, drop.first_seq, drop.count) for drop in drops] == [("alert", 1, 1)]
    assert "event of topic alert cannot be encoded" in caplog.text


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b"", "truncated"),
        (msgspec.msgpack.encode({"type": "replay", "topic": "step", "first": 1, "last": 2**64 - 1}), "at `$.last`"),
        (msgspec.msgpack.encode({"type": "replay", "topic": "step", "first": 2**63 - 1, "last": 2**63 - 1}), ""),
        (b"\x82\xa4type\xa6replay\xa1x" + b"\x91" * 100_000, "recursion"),
        (msgspec.msgpack.encode({"type": "replay", "topic": "jazz", "first": 1, "last": 2}), "unknown topic 'jazz'"),
    ],
)
def test_every_replay_request_is_answered(endpoints: Endpoints, payload: bytes, words: str) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with running(endpoints), context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        dealer.connect(endpoints.replay)
        dealer.send(payload)
        assert dealer.poll(int(DEADLINE_S * 1000))
        topic, _, end = dealer.recv_multipart()
    context.destroy(linger=0)
    assert topic == b"end"
    assert words in msgspec.msgpack.decode(end)["error"]


def test_every_topic_has_numbers_of_its_own(endpoints: Endpoints) -> None:
    with running(endpoints) as engine, Subscriber(endpoints, ["step", "alert"]) as subscriber:
        for step in range(1, 4):
            engine.publish_steps(1)
            engine.bus.publish(
                AlertEvent(boot_id="boot-1", step=step, t=0.0, code="invariant", level="info", message="")
            )
        items = poll_until(subscriber, lambda items: len(items) == 6)
    seqs = [item.seq for item in items if isinstance(item, StepEvent | AlertEvent)]
    assert sorted(seqs) == [1, 1, 2, 2, 3, 3]


def test_wants_only_what_is_subscribed(endpoints: Endpoints) -> None:
    with running(endpoints) as engine:
        assert not any(engine.bus.wants(topic) for topic in TOPICS)
        with Subscriber(endpoints, ["knob"]) as subscriber:
            poll_until(subscriber, lambda _: subscriber.is_joined)
            wanted = {topic for topic in TOPICS if engine.bus.wants(topic)}
            assert wanted == {"knob", "heartbeat", "hello"}
        deadline = time.monotonic() + DEADLINE_S
        while engine.bus.wants("knob"):
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_close_with_a_reader_that_does_not_read(endpoints: Endpoints) -> None:
    """B94: unsent messages, a reader that never reads, one that waits for an answer: closing does not hang."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    engine = FakeEngine(endpoints)
    engine.bus.start()
    with Subscriber(endpoints, ["step"], hwm=1) as subscriber, context.socket(zmq.DEALER) as dealer:
        poll_until(subscriber, lambda _: subscriber.is_joined)
        dealer.linger = 0
        dealer.connect(endpoints.control)
        dealer.send(msgspec.msgpack.encode({"type": "set_knobs", "changes": {"threshold": 3}}))
        engine.publish_steps(3000, reason_detail="x" * 10_000)
        before = time.monotonic()
        engine.bus.close()
        assert (
            time.monotonic() - before < DEADLINE_S
        )  # the bus bounds each of its waits; this only tells it from a hang
    context.destroy(linger=0)
    engine.bus.close()  # harmless twice
    engine.publish_steps(1)  # and so is publishing after it
    assert engine.bus.take_control() == []


def test_last_events_before_close_arrive(endpoints: Endpoints) -> None:
    with running(endpoints) as engine, Subscriber(endpoints, ["step"]) as subscriber:
        poll_until(subscriber, lambda _: subscriber.is_joined)
        engine.publish_steps(50)
        engine.bus.close()
        items = poll_until(subscriber, lambda items: len(items) == 50)
    assert steps_in(items) == list(range(1, 51))


def test_close_removes_the_sockets_and_only_those(endpoints: Endpoints, socket_dir: Path) -> None:
    (socket_dir / "notes.txt").write_text("mine")
    with running(endpoints):
        assert len(list(socket_dir.iterdir())) == 4
    assert [path.name for path in socket_dir.iterdir()] == ["notes.txt"]


def test_regular_file_at_a_socket_path_is_never_deleted(endpoints: Endpoints, socket_dir: Path) -> None:
    """B91: the transport would unlink it; the bus refuses, and binds nothing."""
    path = socket_dir / "control.sock"
    path.write_text("precious")
    with pytest.raises(EndpointError, match=r"endpoints\.control is ipc://.*not a socket.*left alone"):
        FakeEngine(endpoints).bus.start()
    assert path.read_text() == "precious"
    assert [entry.name for entry in socket_dir.iterdir()] == ["control.sock"]


def test_second_engine_on_live_endpoints_is_refused(endpoints: Endpoints) -> None:
    """B92: it names the process that listens; the first one and its reader go on."""
    with running(endpoints) as engine, Subscriber(endpoints, ["step"]) as subscriber:
        with pytest.raises(EndpointError, match=rf"endpoints\.events .* process {os.getpid()} listens there already"):
            FakeEngine(endpoints, "boot-2").bus.start()
        engine.publish_steps(1)
        assert steps_in(poll_until(subscriber, lambda items: bool(items))) == [1]


@pytest.mark.parametrize("role", ["events", "control", "replay"])
def test_taken_port_names_endpoint_and_option(role: str) -> None:
    """B93: each of the three in turn; nothing stays bound, so a second try with another port works."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    loopback = dict.fromkeys(("events", "control", "replay"), "tcp://127.0.0.1:*")
    with context.socket(zmq.REP) as taken:
        port = taken.bind_to_random_port("tcp://127.0.0.1")
        clash = Endpoints(**{**loopback, role: f"tcp://127.0.0.1:{port}"})
        with pytest.raises(
            EndpointError, match=rf"cannot bind endpoints\.{role} to tcp://127\.0\.0\.1:{port}: Address"
        ):
            FakeEngine(clash).bus.start()
    context.destroy(linger=0)
    with running(Endpoints(**loopback)) as engine, Subscriber(engine.bus.endpoints, ["step"]) as subscriber:
        assert "*" not in engine.bus.endpoints.events
        engine.publish_steps(1)
        assert steps_in(poll_until(subscriber, lambda items: bool(items))) == [1]


def test_forked_child_leaves_the_bus_alone(endpoints: Endpoints) -> None:
    """B95: a child that publishes, closes and collects garbage; the parent's bus goes on. In a process of its own,
    because forking a process with threads is what is tested."""
    script = textwrap.dedent(
        """
        import gc, os, sys, warnings
        from pathlib import Path
        from probes.endpoints import Endpoints
        from tests.probes.fake_engine import FakeEngine, Subscriber, poll_until

        warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
        endpoints = Endpoints.in_dir(Path(sys.argv[1]))
        engine = FakeEngine(endpoints)
        engine.bus.start()
        subscriber = Subscriber(endpoints, ["step"])
        poll_until(subscriber, lambda _: subscriber.is_joined)
        for _ in range(5):
            child = os.fork()
            if child == 0:
                engine.publish_steps(3)
                assert engine.bus.take_control() == []
                engine.bus.close()
                del engine
                gc.collect()
                os._exit(0)
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            engine.publish_steps(1)
        items = poll_until(subscriber, lambda items: len(items) == 5)
        print([item.seq for item in items])
        subscriber.close()
        engine.bus.close()
        print(sorted(os.listdir(sys.argv[1])))
        """
    )
    directory = str(Path(endpoints.events.removeprefix("ipc://")).parent)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, directory],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["[1, 2, 3, 4, 5]", "[]"]


def test_time_stamps_never_fall(endpoints: Endpoints) -> None:
    """B101: the wall clock set back between two events does not show in their ``t``."""
    from probes.clock import FakeClock

    clock = FakeClock()
    engine = FakeEngine(endpoints, clock=clock)
    first = engine.make_step()
    clock.advance(1.5)
    clock.step_wall(-3600.0)
    second = engine.make_step()
    engine.bus.close()
    assert second.t - first.t == pytest.approx(1.5)
