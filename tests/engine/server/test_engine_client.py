"""Who gets which message, and when an abort is sent."""

from __future__ import annotations

import pytest

from engine.ipc import Abort, Failed, Output, Submit, ToEngine
from engine.sampling_params import SamplingParams
from engine.server.api_error import ApiError
from engine.server.engine_client import EngineClient


class Wire:
    """A client on an engine that notes what it is sent."""

    def __init__(self, capacity: int = 8) -> None:
        self.sent: list[ToEngine] = []
        self.client = EngineClient(capacity)
        self.client.connect(self.sent.append)

    def submit(self, request_id: str) -> list[Output | Failed]:
        got: list[Output | Failed] = []
        self.client.make_room(1)
        self.client.submit(Submit(request_id=request_id, prompt_ids=[1], sampling=SamplingParams()), got.append)
        return got

    @property
    def aborted(self) -> list[str]:
        return [message.request_id for message in self.sent if isinstance(message, Abort)]


def test_a_finished_request_is_not_aborted() -> None:
    """B72: 500 normal requests, no abort."""
    wire = Wire()
    for number in range(500):
        got = wire.submit(f"r{number}")
        wire.client.handle(Output(request_id=f"r{number}", token_ids=[1]))
        wire.client.handle(Output(request_id=f"r{number}", finish_reason="stop"))
        wire.client.abort(f"r{number}")
        assert len(got) == 2
    assert wire.aborted == []
    assert wire.client.in_flight == 0


def test_a_failed_request_is_not_aborted() -> None:
    """B72."""
    wire = Wire()
    wire.submit("a")
    wire.client.handle(Failed(request_id="a", status=500, code="x", message="y"))
    wire.client.abort("a")
    assert wire.aborted == []


def test_two_aborts_are_one() -> None:
    """B72: cancelled twice at once, aborted once; what still comes for it is dropped."""
    wire = Wire()
    got = wire.submit("a")
    wire.client.abort("a")
    wire.client.abort("a")
    wire.client.handle(Output(request_id="a", token_ids=[1]))
    assert wire.aborted == ["a"]
    assert got == []


def test_death_of_the_engine_fails_everything_and_sends_nothing() -> None:
    wire = Wire()
    answers = [wire.submit("a"), wire.submit("b")]
    wire.client.disconnect(503, "gone", "the engine died")
    for got in answers:
        assert [message.status for message in got if isinstance(message, Failed)] == [503]
    assert wire.aborted == []
    with pytest.raises(ApiError) as caught:
        wire.client.make_room(1)
    assert caught.value.status == 503
    assert caught.value.headers == {"retry-after": "2"}


def test_capacity() -> None:
    """B81: over the limit an answer comes at once."""
    wire = Wire(capacity=2)
    wire.submit("a")
    wire.client.make_room(1)
    with pytest.raises(ApiError) as caught:
        wire.client.make_room(2)
    assert (caught.value.status, caught.value.code, caught.value.kind) == (429, "queue_full", "rate_limit_error")
    wire.client.abort("a")
    wire.client.make_room(2)
