"""Control over real sockets: answers, refusals and timeouts."""

from __future__ import annotations

import os
import pwd
import socket
import threading
import time
from typing import Any

import msgspec
import pytest
import zmq

from probes.control import (
    Applied,
    ControlClient,
    ControlError,
    ControlTimeout,
    GapReport,
    Noted,
    Refused,
    Reply,
    SetKnobs,
    decode_reply,
    describe_self,
)
from probes.control_desk import MAX_WAITING
from probes.endpoints import Endpoints
from probes.events import AlertEvent, HelloEvent
from probes.subscriber import Received, Subscriber
from tests.probes.fake_engine import DEADLINE_S, poll_until, running


def test_bus_answers_while_the_engine_is_in_a_long_step(endpoints: Endpoints) -> None:
    """Hello, state and ping need no loop: nobody serves control here."""
    with running(endpoints) as engine, ControlClient(endpoints) as client:
        engine.bus.stage("run", 17)
        assert client.ping() == "boot-1"
        state = client.state()
        assert (state.knobs["threshold"], state.knob_epoch, state.stage, state.step) == (4, 0, "run", 17)
        engine.publish_steps(3)
        hello = client.hello()
        assert (hello.name, hello.last_seqs["step"]) == ("fake", 3)


def test_two_clients_change_one_knob(endpoints: Endpoints) -> None:
    """Compare-and-set: of two who saw the same value one wins, and the other is told what it is now."""
    replies: list[Reply] = []
    start = threading.Barrier(2)

    def race(who: str, value: int) -> None:
        with ControlClient(endpoints, who=who, timeout=DEADLINE_S) as client:
            assert client.state().knobs["threshold"] == 4
            start.wait(DEADLINE_S)
            replies.append(client.set_knobs({"threshold": value}, expect={"threshold": 4}))

    with running(endpoints) as engine:
        threads = [threading.Thread(target=race, args=args) for args in (("ada", 8), ("bob", 16))]
        for thread in threads:
            thread.start()
        engine.serve_control(2)
        for thread in threads:
            thread.join()
    applied = [reply for reply in replies if isinstance(reply, Applied)]
    refused = [reply for reply in replies if isinstance(reply, Refused)]
    assert (len(applied), len(refused)) == (1, 1)
    assert refused[0].code == "conflict"
    assert refused[0].found == applied[0].new
    assert engine.board.knob_epoch == 1


def test_unanswered_change_times_out_with_advice(endpoints: Endpoints) -> None:
    with running(endpoints), ControlClient(endpoints) as client:
        before = time.monotonic()
        with pytest.raises(ControlTimeout, match=r"within 0\.2 s: someone listens there.*`specwb get`"):
            client.set_knobs({"threshold": 8}, timeout=0.2)
        assert time.monotonic() - before < DEADLINE_S
        assert client.ping() == "boot-1"  # the client is fit for use after it


def test_dead_engines_socket_is_told_from_no_engine(endpoints: Endpoints) -> None:
    with ControlClient(endpoints, timeout=0.1) as client:
        with pytest.raises(ControlTimeout, match="there is no socket at that path"):
            client.ping()
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(endpoints.control.removeprefix("ipc://"))
        with pytest.raises(ControlTimeout, match="nobody listens on that socket"):
            client.ping()


def test_change_that_timed_out_does_not_reach_the_next_engine(endpoints: Endpoints) -> None:
    """A request that never left is thrown away with its socket."""
    with ControlClient(endpoints) as client:
        with pytest.raises(ControlTimeout):
            client.set_knobs({"threshold": 99}, timeout=0.05)
        with running(endpoints) as engine:
            assert client.ping(timeout=DEADLINE_S) == "boot-1"
            assert engine.bus.take_control() == []


def test_too_many_waiting_changes_are_refused_as_busy(endpoints: Endpoints) -> None:
    with running(endpoints) as engine, ControlClient(endpoints) as client:
        assert client.ping()  # connected
        for _ in range(MAX_WAITING):
            assert client.notify(SetKnobs(changes={"threshold": 5}))
        reply = client.set_knobs({"threshold": 6})
        assert isinstance(reply, Refused)
        assert reply.code == "busy"
        assert len(engine.bus.take_control()) == MAX_WAITING


def test_closing_engine_refuses_what_waits(endpoints: Endpoints) -> None:
    replies: list[Reply] = []
    with running(endpoints) as engine:

        def ask() -> None:
            with ControlClient(endpoints, timeout=DEADLINE_S) as client:
                replies.append(client.set_knobs({"threshold": 5}))

        thread = threading.Thread(target=ask)
        thread.start()
        deadline = time.monotonic() + DEADLINE_S
        while not engine.bus._desk._waiting:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        engine.bus.close()
        thread.join()
    assert isinstance(replies[0], Refused)
    assert replies[0].code == "closing"


def raw_dealer(context: zmq.Context[zmq.Socket[bytes]], endpoints: Endpoints) -> zmq.Socket[bytes]:
    dealer = context.socket(zmq.DEALER)
    dealer.linger = 0
    dealer.connect(endpoints.control)
    return dealer


@pytest.mark.parametrize(
    ("payload", "words", "request_id"),
    [
        (b"", "", ""),
        (b"\xc1\xff", "", ""),
        (b'{"type": "ping"}', "Expected `object`", ""),
        (msgspec.msgpack.encode({"type": "selfdestruct", "request_id": "q"}), "Invalid value 'selfdestruct'", "q"),
        (msgspec.msgpack.encode({"type": "set_knobs", "request_id": "q"}), "missing required field `changes`", "q"),
        (msgspec.msgpack.encode({"type": "set_knobs", "changes": [1], "request_id": "q"}), "Expected `object`", "q"),
        (msgspec.msgpack.encode({"type": "ping", "request_id": 7}), "Expected `str`", ""),
        (b"\x91" * 100_000, "Expected `object`", ""),
        (b"\x82\xa4type\xa9set_knobs\xa7changes\x81\xa1x" + b"\x91" * 100_000, "recursion", ""),
    ],
)
def test_malformed_request_is_refused_and_the_engine_goes_on(
    endpoints: Endpoints, payload: bytes, words: str, request_id: str
) -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with running(endpoints):
        with raw_dealer(context, endpoints) as dealer:
            dealer.send(payload)
            assert dealer.poll(int(DEADLINE_S * 1000))
            reply = decode_reply(dealer.recv())
        with ControlClient(endpoints) as client:
            assert client.ping() == "boot-1"
    context.destroy(linger=0)
    assert isinstance(reply, Refused)
    assert (reply.code, reply.request_id) == ("malformed", request_id)
    assert words in reply.message


def test_a_req_socket_and_unknown_fields_work_too(endpoints: Endpoints) -> None:
    """A script of someone else's may use REQ, and a newer client may send more."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    with running(endpoints), context.socket(zmq.REQ) as req:
        req.linger = 0
        req.connect(endpoints.control)
        req.send(msgspec.msgpack.encode({"type": "ping", "request_id": "z", "mood": "good"}))
        assert req.poll(int(DEADLINE_S * 1000))
        assert msgspec.msgpack.decode(req.recv()) == {"type": "pong", "request_id": "z", "boot_id": "boot-1"}
    context.destroy(linger=0)


def test_failing_hook_is_an_answer(endpoints: Endpoints) -> None:
    with running(endpoints) as engine, ControlClient(endpoints) as client:

        def broken() -> HelloEvent:
            raise RuntimeError("no model yet")

        engine.bus._hello = broken
        with pytest.raises(ControlError, match=r"refused \(internal\): RuntimeError: no model yet"):
            client.hello()
        assert client.ping() == "boot-1"


def test_gap_reports_are_summed_and_those_of_another_boot_ignored(endpoints: Endpoints) -> None:
    with (
        running(endpoints, heartbeat_s=0.2) as engine,
        Subscriber(endpoints, ["alert"]) as subscriber,
        ControlClient(endpoints) as client,
    ):
        for first, last, boot_id in ((50, 99, "boot-0"), (1, 2, ""), (10, 19, "boot-1")):
            report = GapReport(topic="step", first=first, last=last, who="me", boot_id=boot_id)
            assert isinstance(client.request(report), Noted)
        items = poll_until(subscriber, lambda items: lost_in(items) >= 12)
        assert engine.bus.dropped == 0
    assert lost_in(items) == 12
    alert = items[-1]
    assert isinstance(alert, AlertEvent)
    assert (alert.data["who"], alert.data["topic"], alert.data["last"]) == ("me", "step", 19)


def lost_in(items: list[Received]) -> int:
    """Events that the alerts say were lost; a heartbeat between two reports makes two alerts of them."""
    return sum(item.data["lost"] for item in items if isinstance(item, AlertEvent))


@pytest.mark.parametrize("changes", [{"threshold": None}, {"threshold": {"deep": [1]}}, {"spec": b"on"}, {"": 1}])
def test_wrong_types_come_back_as_refusals(endpoints: Endpoints, changes: dict[str, Any]) -> None:
    with running(endpoints) as engine:
        loop = threading.Thread(target=engine.serve_control, args=(1,))
        loop.start()
        with ControlClient(endpoints, timeout=DEADLINE_S) as client:
            reply = client.set_knobs(changes)
        loop.join()
    assert isinstance(reply, Refused)
    assert reply.code in ("bad_value", "unknown_knob")


def test_who_sends_is_a_name_where_the_user_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a bare number: ``last changed by`` is read by people. A container's nameless user keeps the number."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: ["ann"])  # getpass takes the first field
    assert describe_self() == f"ann/{os.getpid()}"

    def nobody(uid: int) -> list[str]:
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert describe_self() == f"{os.getuid()}/{os.getpid()}"
