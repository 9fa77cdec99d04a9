"""The default model on the device: speculation changes nothing but near-ties, in float32 and in bfloat16 (B43)."""

from __future__ import annotations

from functools import cache

import pytest

from engine.gpu_check.exactness import DEFAULT_PROMPTS
from engine.gpu_check.teacher_forcing import make_reference
from engine.llm import LLM, Completion
from engine.measure.workload import read_prompts
from tests.gpu.engines import (
    BFLOAT16_LIMIT,
    CHAIN,
    FLOAT32_LIMIT,
    TREE,
    assert_near_ties_only,
    default,
    device_engine,
    host_reference,
)

TOKENS = 12
LIMITS = {"float32": FLOAT32_LIMIT, "bfloat16": BFLOAT16_LIMIT}


@cache
def two_hundred() -> list[list[int]]:
    """Everyday prompts, each asked 25 ways."""
    target, _ = default()
    texts = read_prompts(str(DEFAULT_PROMPTS))
    return [target.chat_ids(f"{texts[i % len(texts)]} (Answer {i // len(texts)}.)") for i in range(200)]


@cache
def engine(dtype: str) -> LLM:
    return device_engine(default(), dtype=dtype, max_running=64, kv_tokens=64 * 384, scheduler="overlap")


@cache
def off(dtype: str) -> list[Completion]:
    """Speculation never on, on the same device."""
    engine(dtype).set_knobs(spec="off")
    return make_reference(engine(dtype), two_hundred(), TOKENS)


@pytest.mark.parametrize("shape", [CHAIN, TREE], ids=["chain", "tree"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_two_hundred_prompts_say_the_same_on_and_off(dtype: str, shape: dict[str, int]) -> None:
    expected, llm = off(dtype), engine(dtype)
    llm.set_knobs(spec="on", **shape)
    assert_near_ties_only(expected, llm, limit=LIMITS[dtype], share=0.03)


def test_float32_says_what_the_cpu_says() -> None:
    given = two_hundred()[:16]
    expected = host_reference(default()[0], given, TOKENS)
    engine("float32").set_knobs(spec="on", **TREE)
    assert_near_ties_only(expected, engine("float32"))


def test_the_heads_acceptance_is_what_it_is_on_the_cpu() -> None:
    """tests/engine/test_default_model.py has the same bar."""
    llm = engine("float32")
    llm.set_knobs(spec="on", **TREE)
    completions = make_reference(llm, two_hundred()[:8], 40)
    verifies = sum(completion.verify_steps for completion in completions)
    assert 1 + sum(completion.correct_drafts for completion in completions) / verifies > 1.9
