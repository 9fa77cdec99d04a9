"""The default model and its head as users get them: lossless in float32, accepted as often as measured."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

from engine.config import Dtype, EngineConfig
from engine.keyed_uniform import keyed_uniform
from engine.llm import LLM, Completion
from engine.models.checkpoint import TargetCheckpoint, load_draft
from engine.sampler import probabilities
from engine.sampling_params import SamplingParams
from probes.knobs import Knobs
from tests.engine.fresh_prefill import check_draft, last_logits, off_window
from tests.engine.near_ties import Generate, differences, top_two_gap

pytestmark = pytest.mark.timeout(1500)

TOPICS = [
    "Why is the sky blue?",
    "Write a Python function that reverses a list.",
    "Give me three tips for sleeping well.",
    "Summarize: " + "The river rose in spring and the town moved its market uphill. " * 6,
    "Translate to French: good morning, my friend.",
    "What is the capital of Peru, and what is it known for?",
    "Write a short poem about rain.",
    "List the planets." + " Be brief." * 12,
]
TREE = {"steps": 2, "topk": 4, "draft_tokens": 16}
CHAIN = {"steps": 2, "topk": 1, "draft_tokens": 3}
LIMIT = 1e-3


@pytest.fixture(scope="module")
def llm(default_target: TargetCheckpoint) -> LLM:
    """float32; one engine for all tests of this file."""
    config = EngineConfig(
        dtype="float32", kv_tokens=16384, max_running=32, debug_checks=True, max_model_len=1024, knobs=Knobs(spec="off")
    )
    return LLM(default_target, draft=load_draft("smollm2-135m-eagle3", default_target), config=config)


@pytest.fixture(scope="module")
def given(llm: LLM) -> list[list[int]]:
    """32 prompts of different lengths."""
    return [llm.chat_ids(f"{topic} ({i})" + " please" * (i // 8)) for i, topic in enumerate(TOPICS * 4)]


@pytest.fixture(scope="module")
def expected(llm: LLM, given: list[list[int]]) -> list[Completion]:
    """Speculation never on; with the two likeliest tokens of every position."""
    llm.set_knobs(spec="off")
    return llm.generate(given, SamplingParams(max_tokens=20, temperature=0.0, ignore_eos=True, logprobs=2))


GREEDY = SamplingParams(max_tokens=20, temperature=0.0, ignore_eos=True)


def always(llm: LLM, **knobs: Any) -> Generate:
    def generate(prompts: list[list[int]], params: list[SamplingParams]) -> list[Completion]:
        llm.set_knobs(spec="on", **knobs)
        return llm.generate(prompts, params)

    return generate


def switched(llm: LLM, sync: str, seed: int) -> Generate:
    rng = random.Random(seed)

    def before_step(llm: LLM) -> None:
        llm.set_knobs(spec=rng.choice(["on", "off"]), draft_sync=sync, **rng.choice([TREE, CHAIN]))

    return lambda prompts, params: llm.generate(prompts, params, before_step)


@pytest.mark.parametrize("shape", [CHAIN, TREE], ids=["chain", "tree"])
def test_always_on_says_what_never_on_says(llm: LLM, expected: list[Completion], shape: dict[str, Any]) -> None:
    excuses = differences(expected, [GREEDY] * 32, always(llm, **shape), top_two_gap(expected), LIMIT)
    assert len(excuses) <= 1  # at most one in 2,000 tokens


@pytest.mark.parametrize("sync", ["lazy", "eager", "sticky"])
def test_switched_before_every_step_says_the_same(llm: LLM, expected: list[Completion], sync: str) -> None:
    excuses = differences(expected, [GREEDY] * 32, switched(llm, sync, seed=1), top_two_gap(expected), LIMIT)
    assert len(excuses) <= 1
    assert llm.core.ledger.pages_used == 0


def draw_margin(llm: LLM, completion: Completion, params: SamplingParams, at: int) -> float:
    """How near the keyed draw of a position lies to the border of another token."""
    ids = completion.prompt_ids + completion.token_ids[:at]
    cdf = probabilities(last_logits(llm, ids), [params])[0].cumsum(0)
    coin = float(keyed_uniform(np.array([params.seed], dtype=np.uint64), [len(ids)])[0]) * float(cdf[-1])
    return float((cdf - coin).abs().min())


def test_seeded_text_is_the_same_on_off_and_switching(llm: LLM, given: list[list[int]]) -> None:
    params = [SamplingParams(max_tokens=16, temperature=0.9, top_p=0.95, seed=i, ignore_eos=True) for i in range(8)]
    llm.set_knobs(spec="off")
    expected = llm.generate(given[:8], params)

    def margin(i: int, at: int) -> float:
        return draw_margin(llm, expected[i], params[i], at)

    excuses = []
    for generate in (always(llm, **TREE), switched(llm, "lazy", seed=2)):
        excuses += differences(expected, params, generate, margin, LIMIT)
    assert len(excuses) <= 1


def test_the_heads_acceptance_is_what_was_measured(llm: LLM) -> None:
    """On eight short chats (`make bench` measures the full figures). 1.0 would be a head that is broken."""
    prompts = [llm.chat_ids(topic) for topic in TOPICS]
    llm.set_knobs(spec="on", draft_sync="lazy", **TREE)
    completions = llm.generate(prompts, SamplingParams(max_tokens=40, temperature=0.0))
    verifies = sum(c.verify_steps for c in completions)
    assert 1 + sum(c.correct_drafts for c in completions) / verifies > 1.9


def test_draft_kv_after_off_windows_equals_a_fresh_draft_prefill(llm: LLM, given: list[list[int]]) -> None:
    """After windows of 64 and of 500 tokens, float32, 1e-4."""
    llm.set_knobs(spec="on", draft_sync="lazy", **TREE)
    request = llm.core.add("window", given[0], SamplingParams(max_tokens=700, temperature=0.0, ignore_eos=True))
    while request.in_prefill:
        llm.core.step()
    with torch.inference_mode():
        for window in (64, 500):
            off_window(llm, request, window)
            check_draft(llm.core, request, 1e-4)
    llm.core.abort("window")


@pytest.mark.parametrize(("dtype", "least_cosine"), [("bfloat16", 0.999), ("float16", 0.99999)])
def test_half_precision_says_nearly_what_float32_says(
    llm: LLM, given: list[list[int]], default_target: TargetCheckpoint, dtype: Dtype, least_cosine: float
) -> None:
    """Text may differ at near-ties, so the logits are compared; and a speculating run gives its tokens."""
    config = EngineConfig(dtype=dtype, kv_tokens=2048, max_model_len=512, knobs=Knobs(spec="on"))
    half = LLM(default_target, draft=load_draft("smollm2-135m-eagle3", default_target), config=config)
    for prompt in given[:4]:
        wanted, got = last_logits(llm, prompt)[0].float(), last_logits(half, prompt)[0].float()
        assert torch.cosine_similarity(wanted, got, dim=0) > least_cosine
        assert int(wanted.argmax()) in got.topk(3).indices.tolist()
    params = SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True)
    assert [len(c.token_ids) for c in half.generate(given[:2], params)] == [8, 8]
