"""What is run while measuring: the everyday prompts, and requests of a given context."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from engine.config import EngineConfig
from engine.event_sink import MemorySink
from engine.llm import LLM
from engine.sampling_params import SamplingParams
from probes.events import StepEvent
from probes.knobs import Knobs


class _Line(msgspec.Struct):
    id: str
    prompt: str


_EXPECTED = 'expected one {"id": …, "prompt": …} a line'


def read_prompts(path: str) -> list[str]:
    """Prompts of a file with one ``{"id": …, "prompt": …}`` a line.

    Raises:
        ValueError: naming the file and what is expected; also of a file without a prompt.
    """
    try:
        with open(path, "rb") as file:
            prompts = [msgspec.json.decode(line, type=_Line).prompt for line in file if line.strip()]
    except (OSError, msgspec.DecodeError) as error:
        raise ValueError(f"{path}: {error}; {_EXPECTED}") from error
    if not prompts:
        raise ValueError(f"{path}: no prompts; {_EXPECTED}")
    return prompts


def make_llm(model: str, dtype: str, threads: int, knobs: Knobs, **options: Any) -> tuple[LLM, MemorySink]:
    """An engine in this process whose events are kept."""
    sink = MemorySink()
    config = msgspec.convert(
        {"model": model, "dtype": dtype, "threads": threads, "knobs": knobs, **options}, EngineConfig
    )
    return LLM(config=config, sink=sink), sink


def tokens_per_second(llm: LLM, prompts: list[list[int]], max_tokens: int) -> float:
    """Greedy, to the full length, prefill included; all prompts at once."""
    params = SamplingParams(max_tokens=max_tokens, temperature=0.0, ignore_eos=True)
    began = time.perf_counter()
    completions = llm.generate(prompts, params)
    return sum(len(c.token_ids) for c in completions) / (time.perf_counter() - began)


@contextmanager
def requests_in_decode(llm: LLM, count: int, context: int) -> Iterator[None]:
    """``count`` requests that have ``context`` tokens of KV and decode on; aborted at the end."""
    rng = random.Random(0)
    vocab = llm.core.shape.vocab_size
    params = SamplingParams(max_tokens=200, temperature=0.0, ignore_eos=True)
    for i in range(count):
        llm.core.add(f"measure-{i}", [rng.randrange(vocab) for _ in range(context)], params)
    while llm.core.scheduler.waiting or any(r.in_prefill for r in llm.core.scheduler.running):
        llm.core.step()
    try:
        yield
    finally:
        llm.core.abort_all()


def timed_step(llm: LLM) -> float:
    """Seconds of one step."""
    began = time.perf_counter()
    llm.core.step()
    return time.perf_counter() - began


def accept_length(sink: MemorySink, first: int) -> float | None:
    """1 + correct / verified, as a ratio of sums, over the events from ``first`` on."""
    steps = [event for event in sink.events[first:] if isinstance(event, StepEvent)]
    verified = sum(step.verified for step in steps)
    return 1 + sum(step.correct_drafts for step in steps) / verified if verified else None
