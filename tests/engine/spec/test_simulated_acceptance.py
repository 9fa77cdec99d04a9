"""Acceptance by prescription: its mean, its limits, and that nothing else of a step is skipped for it."""

from __future__ import annotations

import pytest

from engine.sampling_params import SamplingParams
from engine.spec.simulated_acceptance import forced_lengths
from tests.engine.tiny import CHAIN, STORY, eagle_engine, prompts, step_events

GREEDY = SamplingParams(max_tokens=40, temperature=0.0, ignore_eos=True)
N = 20_000


@pytest.mark.parametrize("accept", [1.0, 1.25, 2.6, 4.0])
def test_the_mean_is_what_was_asked_for(accept: float) -> None:
    kept = forced_lengths(accept, [7] * N, list(range(N)))
    assert set(kept) <= {int(accept), int(accept) + 1}
    assert sum(kept) / N == pytest.approx(accept, abs=0.02)


def test_it_depends_on_seed_and_position_alone() -> None:
    """With the draws of engine/keyed_uniform.py: what a re-run and the other worker keep."""
    together = forced_lengths(2.5, [1, 2, 2**64 - 1], [10, 10, 11])
    assert together == [forced_lengths(2.5, [seed], [at])[0] for seed, at in [(1, 10), (2, 10), (-1, 11)]]
    assert len({tuple(forced_lengths(2.5, [seed] * 32, list(range(32)))) for seed in range(8)}) == 8


@pytest.mark.parametrize("knobs", [CHAIN, STORY], ids=["chain", "tree"])
def test_an_engine_accepts_what_it_is_told_to(knobs: dict[str, int]) -> None:
    """A head of random weights, which accepts next to nothing by itself."""
    llm, sink = eagle_engine(knobs, simulate_accept=2.6)
    done = llm.generate(prompts(8), GREEDY)
    assert [(c.error, len(c.token_ids)) for c in done] == [(None, 40)] * 8, (
        "also those with one token left, beside others"
    )
    steps = [step for step in step_events(sink) if step.verified]
    assert all(step.simulated for step in step_events(sink))
    emitted = sum(step.correct_drafts + step.verified for step in steps)
    assert emitted / sum(step.verified for step in steps) == pytest.approx(2.6, abs=0.2)
    assert all(2 * step.verified <= step.correct_drafts + step.verified <= 3 * step.verified for step in steps)


def test_a_tree_less_deep_than_the_prescription_gives_what_it_has() -> None:
    llm, sink = eagle_engine(CHAIN, simulate_accept=4.0)
    llm.set_knobs(steps=1, draft_tokens=2)
    llm.generate(prompts(2), GREEDY)
    assert {step.accept_length for step in step_events(sink) if step.verified} == {2.0}


def test_plain_steps_give_one_token() -> None:
    llm, sink = eagle_engine(CHAIN, simulate_accept=4.0)
    llm.set_knobs(spec="off")
    llm.generate(prompts(2), GREEDY)
    assert all(step.emitted <= step.requests + step.prefill_requests for step in step_events(sink))


def test_a_real_engine_says_nothing_of_it() -> None:
    llm, sink = eagle_engine(CHAIN)
    llm.generate(prompts(1), GREEDY)
    assert not any(step.simulated for step in step_events(sink))
