"""Tiny engines in float64, where losslessness must be exact, and what the engine tests share."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from engine.config import EngineConfig
from engine.core import EngineCore
from engine.event_sink import MemorySink
from engine.host_worker import HostWorker
from engine.kv.ledger import KvLedger
from engine.llm import LLM, Completion
from engine.models.checkpoint import DraftCheckpoint, TargetCheckpoint
from engine.models.eagle3 import Eagle3Head
from engine.models.linear import choose_arithmetic
from engine.models.random_checkpoint import random_draft, random_target
from engine.sampling_params import SamplingParams
from engine.spec.eagle3_proposer import Eagle3Proposer
from engine.spec.proposer import Proposer
from engine.spec.scripted_proposer import ORACLE, ScriptedProposer
from probes.events import StepEvent
from probes.knobs import Knobs

Answers = Mapping[tuple[int, ...], Sequence[int]]

STORY = {"steps": 2, "topk": 4, "draft_tokens": 16}
CHAIN = {"steps": 3, "topk": 1, "draft_tokens": 4}
DEEP = {"steps": 4, "topk": 3, "draft_tokens": 20}
SHAPES = [STORY, CHAIN, DEEP, {"steps": 1, "topk": 2, "draft_tokens": 3}, {"steps": 2, "topk": 2, "draft_tokens": 2}]

VARIANT: dict[str, Any] = {}
"""Options that every tiny engine gets besides, as a fixture sets them."""

both_schedulers = pytest.mark.usefixtures("scheduler")
"""``pytestmark`` of modules whose tests must hold with the sync and with the overlap scheduler."""

GREEDY = SamplingParams(max_tokens=24, temperature=0.0, ignore_eos=True)


@cache
def tiny_target() -> TargetCheckpoint:
    return random_target(0)


@cache
def tiny_draft() -> DraftCheckpoint:
    return random_draft(1, tiny_target())


def tiny_config(knobs: Mapping[str, Any] | None = None, **options: Any) -> EngineConfig:
    """float64, every invariant checked after every step."""
    base: dict[str, Any] = {
        "model": "tiny",
        "draft_model": "tiny",
        "dtype": "float64",
        "threads": 1,
        "kv_tokens": 8192,
        "page_size": 16,
        "max_model_len": 1024,
        "debug_checks": True,
        "knobs": Knobs(**{"spec": "on", **(knobs or {})}),
    }
    return EngineConfig(**{**base, **VARIANT, **options})


def eagle_engine(knobs: Mapping[str, Any] | None = None, **options: Any) -> tuple[LLM, MemorySink]:
    """The real head (random weights: it accepts next to nothing)."""
    sink = MemorySink(rows=True)
    return LLM(tiny_target(), draft=tiny_draft(), sink=sink, config=tiny_config(knobs, **options)), sink


def plain_engine(**options: Any) -> LLM:
    """No draft at all."""
    return LLM(tiny_target(), config=tiny_config({"spec": "off"}, draft_model="none", **options))


def scripted_engine(
    answers: Answers,
    knobs: Mapping[str, Any] | None = None,
    *,
    right: int = ORACLE,
    always: int | None = None,
    **options: Any,
) -> tuple[LLM, MemorySink]:
    """A scripted draft over a real head, whose KV is kept in step beside."""
    sink = MemorySink(rows=True)
    target, draft = tiny_target(), tiny_draft()

    def make(ledger: KvLedger) -> Proposer:
        arithmetic = choose_arithmetic("float64")
        embedding = target.tensors["embed_tokens.weight"]
        head = Eagle3Head(draft.shape, draft.tensors, draft.draft_to_target, embedding, arithmetic, 1024)
        inner = Eagle3Proposer(head, ledger)
        return ScriptedProposer(answers, target.shape.vocab_size, right=right, always=always, inner=inner)

    return LLM(target, proposer=make, sink=sink, config=tiny_config(knobs, **options)), sink


def host_worker(core: EngineCore) -> HostWorker:
    """The worker of these engines, for tests that look into it."""
    assert isinstance(core.worker, HostWorker)
    return core.worker


def prompts(count: int, longest: int = 60, seed: int = 0) -> list[list[int]]:
    """Random byte prompts of different lengths, no two alike."""
    rng = random.Random(seed)
    return [[rng.randrange(256) for _ in range(rng.randrange(1, longest))] + [i % 256] for i in range(count)]


def reference(
    given: Sequence[Sequence[int]], sampling: SamplingParams | Sequence[SamplingParams] = GREEDY
) -> list[Completion]:
    """What the target alone says, speculation never on."""
    return plain_engine().generate(given, sampling)


def answers_of(completions: Sequence[Completion]) -> Answers:
    return {tuple(c.prompt_ids): c.token_ids for c in completions}


def step_events(sink: MemorySink) -> list[StepEvent]:
    return [event for event in sink.events if isinstance(event, StepEvent)]


def tokens(completions: Sequence[Completion]) -> list[list[int]]:
    return [c.token_ids for c in completions]


def switch_at_random(seed: int, **more: Sequence[Any]) -> Callable[[LLM], None]:
    """A hook that draws new knobs before every step."""
    rng = random.Random(seed)

    def before_step(llm: LLM) -> None:
        changes: dict[str, Any] = {"spec": rng.choice(["on", "off", "auto"]), **rng.choice(SHAPES)}
        changes.update({name: rng.choice(values) for name, values in more.items()})
        llm.set_knobs(**changes)

    return before_step
