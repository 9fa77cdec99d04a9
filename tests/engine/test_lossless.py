"""Speculation never changes what is said: tiny models in float64, token-identical without exception."""

from __future__ import annotations

from typing import Any

import pytest

from engine.sampling_params import SamplingParams
from tests.engine.tiny import (
    DEEP,
    GREEDY,
    SHAPES,
    STORY,
    answers_of,
    both_schedulers,
    eagle_engine,
    prompts,
    reference,
    scripted_engine,
    step_events,
    switch_at_random,
    tokens,
)

pytestmark = both_schedulers

SYNCS = ["lazy", "eager", "sticky"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s['topk']}/{s['steps']}/{s['draft_tokens']}")
def test_always_on_equals_never_on(shape: dict[str, Any]) -> None:
    given = prompts(32)
    llm, sink = eagle_engine(shape)
    assert tokens(llm.generate(given, GREEDY)) == tokens(reference(given))
    assert any(event.mode == "spec" for event in step_events(sink))


@pytest.mark.parametrize("sync", SYNCS)
@pytest.mark.parametrize("seed", [1, 2])
def test_switched_at_random_before_every_step(sync: str, seed: int) -> None:
    given = prompts(32, seed=seed)
    llm, sink = eagle_engine({"draft_sync": sync}, prefill_chunk=32)
    assert tokens(llm.generate(given, GREEDY, switch_at_random(seed))) == tokens(reference(given))
    modes = {event.mode for event in step_events(sink)}
    assert modes >= {"plain", "prefill", "mixed"} | (set() if sync == "sticky" else {"spec"})


@pytest.mark.parametrize("right", [0, 1, 2, 3, 4, 1 << 30])
@pytest.mark.parametrize("page_size", [1, 16])
def test_drafts_that_are_right_so_far_change_nothing(right: int, page_size: int) -> None:
    """B37, B44: oracle, hostile and j-drafts; the accepted path has to be gathered at every verify."""
    given = prompts(9)
    expected = reference(given)
    llm, sink = scripted_engine(answers_of(expected), DEEP, right=right, page_size=page_size)
    assert tokens(llm.generate(given, GREEDY)) == tokens(expected)
    verified = [e for e in step_events(sink) if e.verified]
    longest = max(len(e.correct_by_position) for e in verified)
    assert longest == min(right, DEEP["steps"])


def test_drafts_of_all_qualities_switched_at_random() -> None:
    given = prompts(16, seed=3)
    expected = reference(given)
    for seed, sync in enumerate(SYNCS):
        llm, _ = scripted_engine(answers_of(expected), {"draft_sync": sync}, right=2, prefill_chunk=48)
        assert tokens(llm.generate(given, GREEDY, switch_at_random(seed, draft_sync=SYNCS))) == tokens(expected)


def test_seeded_text_is_the_same_with_speculation_on_off_and_switching() -> None:
    given = prompts(16, seed=4)
    sampling = [
        SamplingParams(max_tokens=24, temperature=t, top_k=k, top_p=p, min_p=m, seed=seed, ignore_eos=True)
        for seed, (t, k, p, m) in enumerate(
            [(1.0, 0, 1.0, 0.0), (0.7, 20, 0.9, 0.0), (1.5, 0, 0.8, 0.05), (0.0, 0, 1.0, 0.0)] * 4
        )
    ]
    expected = reference(given, sampling)
    on, _ = eagle_engine(STORY)
    assert tokens(on.generate(given, sampling)) == tokens(expected)
    oracle, sink = scripted_engine(answers_of(expected), DEEP)
    assert tokens(oracle.generate(given, sampling)) == tokens(expected)
    assert sum(e.correct_drafts for e in step_events(sink)) > 100  # the walk followed sampled tokens
    switching, _ = scripted_engine(answers_of(expected), STORY, right=1)
    assert tokens(switching.generate(given, sampling, switch_at_random(5))) == tokens(expected)


def test_a_seed_decides_and_different_seeds_differ() -> None:
    """B13: one seed alone and among others gives one text; twenty seeds give several."""
    prompt = prompts(1, seed=6)[0]

    def params(seed: int) -> SamplingParams:
        return SamplingParams(max_tokens=12, temperature=1.0, seed=seed, ignore_eos=True)

    llm, _ = eagle_engine(STORY)
    alone = [llm.generate([prompt], params(42))[0].token_ids for _ in range(5)]
    crowd = llm.generate([prompt] * 8, [params(s) for s in (1, 2, 3, 42, 4, 5, 6, 7)])
    assert alone == [alone[0]] * 5
    assert crowd[3].token_ids == alone[0]
    assert len({tuple(c.token_ids) for c in llm.generate([prompt] * 20, [params(s) for s in range(20)])}) > 10


def test_top_k_without_temperature_samples_with_speculation_on() -> None:
    """B14: a sampled request is not decoded greedily in the verify path."""
    prompt = prompts(1, seed=7)[0]
    llm, _ = eagle_engine(STORY)
    params = [SamplingParams(max_tokens=8, top_k=50, seed=seed, ignore_eos=True) for seed in range(20)]
    assert len({tuple(c.token_ids) for c in llm.generate([prompt] * 20, params)}) > 10


def test_a_greedy_request_is_not_touched_by_hot_neighbours() -> None:
    """B15: greedy alone equals greedy beside seven requests at temperature 1.5, and the neighbours still vary."""
    given = prompts(8, seed=8)
    alone, _ = eagle_engine(STORY)
    expected = alone.generate(given[:1], GREEDY)[0].token_ids
    hot = [SamplingParams(max_tokens=24, temperature=1.5, seed=s, ignore_eos=True) for s in range(7)]
    together = alone.generate([given[0]] * 8, [GREEDY, *hot])
    assert together[0].token_ids == expected
    assert len({tuple(c.token_ids) for c in together[1:]}) == 7
