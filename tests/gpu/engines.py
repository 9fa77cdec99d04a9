"""Engines on the device, and the CPU's own worker in float32 beside them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from engine.config import EngineConfig
from engine.event_sink import MemorySink
from engine.gpu_check.teacher_forcing import BeforeStep, Difference, differences, make_reference
from engine.llm import LLM, Completion
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint, load_draft, load_target
from engine.models.checkpoint_error import CheckpointError
from engine.sampling_params import SamplingParams
from probes.events import StepEvent
from probes.knobs import Knobs

DEVICE = os.environ.get("SPECWB_GPU_TESTS_DEVICE", "cuda")
needs_graphs = pytest.mark.skipif(DEVICE == "cpu", reason="there are no graphs on the CPU")

CHAIN = {"steps": 3, "topk": 1, "draft_tokens": 4}
TREE = {"steps": 2, "topk": 4, "draft_tokens": 16}
DEEP = {"steps": 4, "topk": 3, "draft_tokens": 20}

FLOAT32_LIMIT = 1e-3
BFLOAT16_LIMIT = 0.5


@cache
def tiny() -> tuple[TargetCheckpoint, DraftCheckpoint]:
    """The built-in random model with its head: 4 layers, 4/2 heads of 16, vocabulary 260 or so."""
    target = load_target("tiny-random")
    return target, load_draft("auto", target)


@cache
def default() -> tuple[TargetCheckpoint, DraftCheckpoint]:
    """The default model with its head. SPECWB_MODEL_FILE names a file outside of the cache; without any it skips."""
    try:
        target = load_target(os.environ.get("SPECWB_MODEL_FILE") or "smollm2-135m")
    except CheckpointError as error:
        pytest.skip(f"{error} Or name its GGUF in SPECWB_MODEL_FILE.")
    return target, load_draft("smollm2-135m-eagle3", target)


def device_engine(
    model: tuple[TargetCheckpoint, DraftCheckpoint | None], sink: MemorySink | None = None, **options: Any
) -> LLM:
    """The device worker; float32 and every invariant checked unless asked otherwise. Speculation starts off."""
    target, draft = model
    base: dict[str, Any] = {
        "device": DEVICE,
        "worker": "device",
        "dtype": "float32",
        "max_running": 16,
        "max_model_len": 512,
        "kv_tokens": 16384,
        "prefill_chunk": 256,
        "debug_checks": True,
        "draft_model": "none",
        "knobs": Knobs(spec="off"),
    }
    return LLM(target, draft=draft, sink=sink, config=EngineConfig(**{**base, **options}))


def host_reference(target: TargetCheckpoint, prompts: Sequence[Sequence[int]], tokens: int) -> list[Completion]:
    """What the CPU's own worker says in float32, speculation never on, with the two likeliest tokens of every place."""
    config = EngineConfig(
        dtype="float32", worker="host", draft_model="none", max_model_len=512, knobs=Knobs(spec="off")
    )
    return make_reference(LLM(target, config=config), prompts, tokens)


def assert_near_ties_only(
    reference: Sequence[Completion],
    llm: LLM,
    before_step: BeforeStep | None = None,
    limit: float = FLOAT32_LIMIT,
    share: float = 0.01,
) -> list[Difference]:
    """``llm`` says what the reference says, but where that was nearly undecided: at most ``share`` of the positions,
    all of them printed."""
    found, complete = differences(reference, llm, before_step)
    for difference in found:
        print(f"near-tie: {difference}")
    assert complete, f"most positions differ; the first: {found[0]}"
    decided = [difference for difference in found if difference.gap >= limit]
    assert not decided, f"not near-ties (limit {limit}): {decided[:5]}"
    positions = sum(len(completion.token_ids) for completion in reference)
    assert len(found) <= max(1, share * positions)
    return found


def tokens_of(completions: Sequence[Completion]) -> list[list[int]]:
    """All tokens; none may have failed."""
    assert [completion.error for completion in completions] == [None] * len(completions)
    return [completion.token_ids for completion in completions]


def steps_of(sink: MemorySink) -> list[StepEvent]:
    return [event for event in sink.events if isinstance(event, StepEvent)]


def greedy(tokens: int) -> SamplingParams:
    """To the full length."""
    return SamplingParams(max_tokens=tokens, temperature=0.0, ignore_eos=True)


def prompts(count: int, longest: int = 60) -> list[list[int]]:
    """Byte prompts of different lengths, no two alike."""
    return [[(31 * i + 7 * j) % 256 for j in range(1 + (i * 13) % longest)] + [i % 256] for i in range(count)]
