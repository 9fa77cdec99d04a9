"""What is particular to a step that is planned while another one flies."""

from __future__ import annotations

import msgspec
import pytest
import torch

from engine.event_sink import NoSink
from engine.scheduler import Candidates
from engine.stage_clock import StageClock
from tests.engine.tiny import (
    CHAIN,
    GREEDY,
    answers_of,
    eagle_engine,
    prompts,
    reference,
    scripted_engine,
    step_events,
    tokens,
)


def test_a_plain_request_is_never_planned_past_its_last_token() -> None:
    """How many tokens a plain step gives is known before it lands."""
    given = prompts(4, seed=71)
    params = [msgspec.structs.replace(GREEDY, max_tokens=3 + i) for i in range(4)]
    llm, sink = eagle_engine({"spec": "off"}, scheduler="overlap")
    got = llm.generate(given, params)
    assert [len(c.token_ids) for c in got] == [3, 4, 5, 6]
    assert sum(event.overrun for event in step_events(sink)) == 0


def test_a_request_that_the_verify_in_flight_ends_by_all_appearances_sits_the_next_step_out() -> None:
    """Drafts that are always right: each verify of 4 gives 4, and nothing is verified for requests that are over."""
    given = prompts(3, longest=20, seed=72)
    free = reference(given)
    params = [msgspec.structs.replace(GREEDY, max_tokens=n) for n in (9, 17, 24)]
    llm, sink = scripted_engine(answers_of(free), CHAIN, scheduler="overlap")
    got = llm.generate(given, params)
    assert tokens(got) == [c.token_ids[: p.max_tokens] for c, p in zip(free, params, strict=True)]
    events = step_events(sink)
    assert sum(event.overrun for event in events if event.requests > 1) == 0
    assert llm.core.ledger.used == 0


def test_a_request_is_not_held_back_when_nothing_else_would_run() -> None:
    """The device would stand still, so the row costs nothing, and may be needed."""
    prompt = prompts(1, seed=73)[0]
    llm, sink = scripted_engine(answers_of(reference([prompt])), CHAIN, scheduler="overlap")
    llm.generate([prompt], msgspec.structs.replace(GREEDY, max_tokens=9))
    assert sum(event.overrun for event in step_events(sink)) == 1


def test_requests_that_sit_out_count_for_the_threshold() -> None:
    """Else the last steps of some requests would switch speculation on for the others, and off again."""
    llm, _ = eagle_engine({"spec": "auto", "threshold": 2, "hysteresis": 0})
    with torch.inference_mode():
        assert not llm.core._decide(Candidates([], [], held=3)).speculate
        assert llm.core._decide(Candidates([], [], held=2)).speculate


def test_a_step_that_only_the_furthest_end_of_the_one_in_flight_left_no_page_for_is_planned_again() -> None:
    """Where nothing is left to run by then, it was no step: numbers have no hole."""
    prompt = prompts(1, longest=10, seed=74)[0]
    params = msgspec.structs.replace(GREEDY, max_tokens=5)
    free = reference([prompt], params)
    pages = len(prompt) + 4  # the worst case, and not one more
    llm, sink = scripted_engine(answers_of(free), CHAIN, scheduler="overlap", page_size=1, kv_tokens=pages)
    assert tokens(llm.generate([prompt], params)) == tokens(free)
    assert tokens(llm.generate([prompt], params)) == tokens(free)
    events = step_events(sink)
    assert [event.mode for event in events] == ["prefill", "spec"] * 2
    assert [event.step for event in events] == [1, 2, 3, 4]


def test_rounds_are_measured_between_steps_also_where_one_came_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the time in which the last step of a request landed would be nobody's."""
    now = iter(range(1_000_000, 10**12, 1_000_000))
    monkeypatch.setattr("engine.stage_clock.time.perf_counter_ns", lambda: next(now))
    clock = StageClock(NoSink())
    first = clock.begin_step("schedule", 1)
    clock.take_off(first)
    clock.begin_step("schedule", 2)  # nothing to run
    second = clock.begin_step("schedule", 2)
    assert second.round_us == (second.start - first.start) // 1000
    assert clock.begin_step("schedule", 2).round_us > second.round_us
