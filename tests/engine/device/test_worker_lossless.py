"""The device worker says what the host worker says: tiny models, both schedulers, token-identical in float64."""

from __future__ import annotations

from typing import Any

import pytest

from engine.llm import LLM
from engine.sampling_params import SamplingParams
from tests.engine.device.device_engines import check_pools, device_engine, scripted_device_engine, with_graphs
from tests.engine.near_ties import differences, top_two_gap
from tests.engine.tiny import (
    DEEP,
    SHAPES,
    STORY,
    answers_of,
    both_schedulers,
    prompts,
    reference,
    step_events,
    switch_at_random,
    tokens,
)

pytestmark = both_schedulers

SYNCS = ["lazy", "eager", "sticky"]
GREEDY = SamplingParams(max_tokens=16, temperature=0.0, ignore_eos=True)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s['topk']}/{s['steps']}/{s['draft_tokens']}")
def test_always_on_equals_never_on(shape: dict[str, Any]) -> None:
    given = prompts(8, longest=30)
    llm, sink = device_engine(shape)
    assert tokens(llm.generate(given, GREEDY)) == tokens(reference(given, GREEDY))
    assert any(event.mode == "spec" for event in step_events(sink))


def test_never_on_equals_the_host_worker() -> None:
    given = prompts(8, longest=30)
    llm, sink = device_engine({"spec": "off"}, prefill_chunk=32)
    assert tokens(llm.generate(given, GREEDY)) == tokens(reference(given, GREEDY))
    assert {event.mode for event in step_events(sink)} == {"plain", "prefill", "mixed"}


@pytest.mark.parametrize("sync", SYNCS)
def test_switched_at_random_before_every_step(sync: str) -> None:
    given = prompts(10, longest=40, seed=1)
    llm, sink = device_engine({"draft_sync": sync}, prefill_chunk=32)
    assert tokens(llm.generate(given, GREEDY, switch_at_random(1))) == tokens(reference(given, GREEDY))
    modes = {event.mode for event in step_events(sink)}
    assert modes >= {"plain", "prefill", "mixed"} | (set() if sync == "sticky" else {"spec"})


@pytest.mark.parametrize("right", [0, 1, 2, 1 << 30])
@pytest.mark.parametrize("page_size", [1, 16])
def test_drafts_that_are_right_so_far_change_nothing(right: int, page_size: int) -> None:
    given = prompts(4, longest=30)
    expected = reference(given, GREEDY)
    llm, sink = scripted_device_engine(answers_of(expected), DEEP, right=right, page_size=page_size)
    assert tokens(llm.generate(given, GREEDY)) == tokens(expected)
    longest = max(len(e.correct_by_position) for e in step_events(sink) if e.verified)
    assert longest == min(right, DEEP["steps"])


def test_drafts_of_all_qualities_switched_at_random() -> None:
    given = prompts(6, longest=30, seed=3)
    expected = reference(given, GREEDY)
    llm, sink = scripted_device_engine(answers_of(expected), {}, right=2, prefill_chunk=48)
    assert tokens(llm.generate(given, GREEDY, switch_at_random(3, draft_sync=SYNCS[:2]))) == tokens(expected)
    assert sum(event.correct_drafts for event in step_events(sink)) > 10


def test_float32_differs_at_near_ties_only() -> None:
    given = prompts(6, longest=30, seed=5)
    sampling = [SamplingParams(max_tokens=16, temperature=0.0, ignore_eos=True, logprobs=2)] * len(given)
    llm, _ = device_engine({"spec": "on"}, dtype="float32")
    expected = reference(given, sampling)
    margin = top_two_gap(expected)
    excuses = differences(expected, sampling, lambda p, s: llm.generate(p, s, switch_at_random(6)), margin, limit=1e-3)
    assert len(excuses) <= 1


def mixed_sampling(count: int) -> list[SamplingParams]:
    kinds = [(1.0, 0, 1.0, 0.0), (0.7, 20, 0.9, 0.0), (1.5, 0, 0.8, 0.05), (0.0, 0, 1.0, 0.0)]
    return [
        SamplingParams(max_tokens=16, temperature=t, top_k=k, top_p=p, min_p=m, seed=seed - 3, ignore_eos=True)
        for seed, (t, k, p, m) in enumerate((kinds * count)[:count])
    ]


def test_seeded_text_is_the_host_workers_on_off_and_switching() -> None:
    given = prompts(8, longest=30, seed=4)
    sampling = mixed_sampling(8)
    expected = reference(given, sampling)
    on, _ = device_engine(STORY)
    assert tokens(on.generate(given, sampling)) == tokens(expected)
    assert tokens(on.generate(given, sampling, switch_at_random(5))) == tokens(expected)
    oracle, sink = scripted_device_engine(answers_of(expected), DEEP)
    assert tokens(oracle.generate(given, sampling)) == tokens(expected)
    assert sum(e.correct_drafts for e in step_events(sink)) > 40  # the walk followed sampled tokens


def test_a_greedy_request_is_not_touched_by_hot_neighbours() -> None:
    given = prompts(4, longest=30, seed=8)
    llm, _ = device_engine(STORY)
    expected = llm.generate(given[:1], GREEDY)[0].token_ids
    hot = [SamplingParams(max_tokens=16, temperature=1.5, seed=s, ignore_eos=True) for s in range(3)]
    together = llm.generate([given[0]] * 4, [GREEDY, *hot])
    assert together[0].token_ids == expected
    assert len({tuple(c.token_ids) for c in together[1:]}) == 3


def test_padded_batches_in_recorded_graphs_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = with_graphs(monkeypatch)
    given = prompts(7, longest=30, seed=9)
    sampling = [GREEDY, *mixed_sampling(6)]
    llm, sink = device_engine(STORY, graph_batch_sizes=(2, 4, 8), max_running=8, prefill_chunk=32)
    before = recorder.recorded
    assert tokens(llm.generate(given, sampling, switch_at_random(9))) == tokens(reference(given, sampling))
    steps = [event for event in step_events(sink) if event.requests]
    assert {event.graph_hit for event in steps if event.mode != "mixed"} == {True, False}
    mixed = {(event.graph_hit, (event.graph or "").split("/")[0]) for event in steps if event.mode == "mixed"}
    assert (None, "") in mixed  # chunks and decodes run in one forward, for which there is no graph
    assert mixed <= {(None, ""), (False, "settle")}
    assert {event.shapes.padded_bucket[0] for event in steps} <= {2, 4, 8}
    assert before == 3 * 5  # decode, its settle, draft, verify, its settle: what the first knobs need
    assert recorder.recorded > before  # and what other knobs brought


def test_a_settle_recorded_without_its_verify_touches_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other steps at the same draft_tokens: the verify's graph stands, and its slots are those of the step before."""
    with_graphs(monkeypatch)
    prompt = prompts(1, longest=30, seed=10)[0]
    expected = reference([prompt], GREEDY)
    llm, sink = scripted_device_engine(answers_of(expected), {"steps": 2, "topk": 3, "draft_tokens": 8}, max_running=2)

    def turn(llm: LLM) -> None:
        running = llm.core.scheduler.running
        if running and running[0].output_len > 4:
            llm.set_knobs(steps=3)
            check_pools(llm, running[0])

    assert tokens(llm.generate([prompt], GREEDY, turn)) == tokens(expected)
    assert {event.graph_hit for event in step_events(sink) if event.mode == "spec"} == {True, False}
