"""B99: the words of a newer engine reach an older reader as they are; none of them makes a message unreadable."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from probes.bus_sockets import BusSockets
from probes.control import Refused, decode_reply
from probes.discovery import find_record, new_record, write_record
from probes.endpoints import Endpoints
from probes.events import AlertEvent, Event, RequestEvent, StepEvent
from probes.runtime_dir import engine_dir
from probes.subscriber import Subscriber
from probes.wire import Message, decode_event, pack
from tests.probes.fake_engine import poll_until, running, steps_in


def newer(event: Event, **words: str) -> Event:
    """The event as a newer engine might send it: other words, and a field nobody knows."""
    payload = {**msgspec.to_builtins(event), **words, "flux": [1.21, None]}
    return decode_event(Message(payload["type"], event.seq, msgspec.msgpack.encode(payload)))


def test_words_of_events() -> None:
    step = StepEvent(boot_id="b", step=1, t=0.0, scheduler="sync", mode="plain", reason="no_draft")
    found = newer(step, mode="chunked-spec", reason="by_cost", scheduler="overlap")
    assert isinstance(found, StepEvent)
    assert (found.mode, found.reason, found.scheduler) == ("chunked-spec", "by_cost", "overlap")
    request = newer(RequestEvent(boot_id="b", step=1, t=0.0, request_id="r", phase="arrived"), phase="migrated")
    assert isinstance(request, RequestEvent)
    assert request.phase == "migrated"
    alert = newer(AlertEvent(boot_id="b", step=1, t=0.0, code="c", level="info", message="m"), level="fatal")
    assert isinstance(alert, AlertEvent)
    assert alert.level == "fatal"


def test_the_code_of_a_refusal() -> None:
    reply = decode_reply(
        msgspec.msgpack.encode({"type": "refused", "request_id": "r", "code": "read_only", "message": "not yours"})
    )
    assert reply == Refused(request_id="r", code="read_only", message="not yours")


def test_the_state_of_a_record(runtime: Path) -> None:
    """A record that cannot be read counts as left behind: an engine in a new state must not vanish from `ls`."""
    endpoints = Endpoints.in_dir(engine_dir("main"))
    path = write_record(new_record("main", boot_id="b", endpoints=endpoints, model="none"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "state": "draining", "shard": 3}))
    assert find_record("main").state == "draining"


@pytest.mark.parametrize("topic", ["step_trace", "steps"])
def test_a_topic_whose_name_begins_like_ours_is_skipped(
    endpoints: Endpoints, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subscriptions are prefixes, so a newer engine's `step_trace` comes to everybody who follows `step`."""
    with running(endpoints) as engine, Subscriber(endpoints, ["step"]) as subscriber:
        poll_until(subscriber, lambda _: subscriber.is_joined)
        drain = engine.bus._drain

        def drain_and_more(sockets: BusSockets) -> bool:
            sockets.events.send_multipart(pack(topic, 1, msgspec.msgpack.encode({"type": topic})))
            return drain(sockets)

        monkeypatch.setattr(engine.bus, "_drain", drain_and_more)
        engine.publish_steps(2)
        items = poll_until(subscriber, lambda items: len(steps_in(items)) == 2)
    assert len(items) == 2, "nothing is said about it"
