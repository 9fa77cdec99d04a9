"""Steps that fail: what they cost, and whom."""

from __future__ import annotations

import msgspec
import pytest

from engine.ipc import Failed, Output
from probes.events import RequestEvent
from tests.engine.tiny import (
    GREEDY,
    STORY,
    both_schedulers,
    eagle_engine,
    host_worker,
    prompts,
    reference,
    tokens,
)

pytestmark = both_schedulers


def test_a_request_that_ended_before_its_step_failed_still_gets_its_last_output(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody may wait for an answer that was complete when another request's share of the step broke."""
    given = prompts(2, seed=31)
    llm, _ = eagle_engine(STORY)
    core = llm.core

    def broken(*_: object) -> None:
        raise RuntimeError("no numbers")

    monkeypatch.setattr("engine.host_worker.report_logprobs", broken)
    core.add("ends", given[0], msgspec.structs.replace(GREEDY, max_tokens=1))
    core.add("goes on", given[1], msgspec.structs.replace(GREEDY, logprobs=1))
    last, failed = [*core.step(), *core.step()]
    assert isinstance(last, Output)
    assert (last.request_id, last.finish_reason, len(last.token_ids)) == ("ends", "length", 1)
    assert isinstance(failed, Failed)
    assert (failed.request_id, failed.status) == ("goes on", 500)
    assert core.ledger.pages_used == 0


def test_a_request_whose_end_itself_fails_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has left the engine, its last output was never made: without a word its client would wait for ever."""

    def broken(*_: object) -> None:
        raise RuntimeError("no numbers")

    llm, sink = eagle_engine(STORY)
    monkeypatch.setattr("engine.host_worker.report_logprobs", broken)
    core = llm.core
    core.add("ends", prompts(1)[0], msgspec.structs.replace(GREEDY, max_tokens=1, logprobs=1))
    [failed] = [*core.step(), *core.step()]
    assert isinstance(failed, Failed)
    assert (failed.request_id, failed.status, failed.code) == ("ends", 500, "step_failed")
    assert core.ledger.pages_used == 0
    assert not core.has_work
    phases = [event.phase for event in sink.events if isinstance(event, RequestEvent)]
    assert phases == ["arrived", "aborted"]  # nobody was given what it had finished with


def test_steps_that_fail_end_their_requests_and_the_engine_goes_on() -> None:
    given = prompts(2, seed=31)
    llm, _ = eagle_engine(STORY)
    core = llm.core
    run = host_worker(core).runner.run

    def broken(*args: object) -> object:
        raise RuntimeError("kernel fault")

    host_worker(core).runner.run = broken  # type: ignore[method-assign, assignment]
    core.add("a", given[0], GREEDY)
    outputs = core.step()
    assert [type(o) for o in outputs] == [Failed]
    assert isinstance(outputs[0], Failed)
    assert (outputs[0].status, outputs[0].code) == (500, "step_failed")
    host_worker(core).runner.run = run  # type: ignore[method-assign]
    assert (core.ledger.used, core.ledger.pages_used) == (0, 0)
    assert tokens(llm.generate(given, GREEDY)) == tokens(reference(given))
