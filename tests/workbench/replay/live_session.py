"""A session of a real engine with everything that a rerun must do again, and its recording."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from engine.core import EngineCore
from engine.event_sink import MemorySink
from engine.identity import hello_of
from engine.llm import LLM
from engine.sampling_params import SamplingParams
from probes.control import Applied, SetKnobs
from probes.events import Event, HelloEvent
from tests.engine.tiny import STORY, eagle_engine, plain_engine, prompts, tiny_target
from workbench.recording.writer import RecordingWriter

SAMPLED = SamplingParams(max_tokens=40, temperature=0.9, top_p=0.95, seed=7, ignore_eos=True)
UNSEEDED = SamplingParams(max_tokens=30, temperature=1.0, top_k=50, ignore_eos=True)
GREEDY = SamplingParams(max_tokens=25, temperature=0.0, ignore_eos=True)
TOPICS = ("step", "request", "knob", "hello", "rows")


def stopping() -> tuple[list[int], SamplingParams]:
    """A prompt and a stop string that its greedy answer comes upon."""
    prompt = prompts(1, seed=25)[0]
    free = plain_engine().generate([prompt], SamplingParams(max_tokens=24, seed=5, ignore_eos=True))[0]
    pieces = [tiny_target().tokenizer.decode([token]) for token in free.token_ids]
    stop = next(piece for piece in pieces[6:] if piece.isprintable() and piece and piece != "\ufffd")
    return prompt, SamplingParams(max_tokens=24, seed=5, ignore_eos=True, stop=(stop,))


def change(core: EngineCore, **changes: Any) -> None:
    assert isinstance(core.set_knobs(SetKnobs(changes=changes, who="ann")), Applied)


def play(llm: LLM) -> None:
    """Five requests: one stops at a string, one is aborted, one comes when the engine has been idle; four switches."""
    core, (prompt, stops), given = llm.core, stopping(), prompts(4, seed=3)
    at: dict[int, Callable[[], object]] = {
        2: lambda: core.add("stops", prompt, stops),
        4: lambda: change(core, spec="off"),
        5: lambda: core.add("unseeded", given[2], UNSEEDED),
        7: lambda: change(core, spec="auto", threshold=2),
        9: lambda: core.abort("leaves"),
        12: lambda: change(core, spec="on", steps=3, topk=1, draft_tokens=4),
    }
    core.add("greedy", given[0], GREEDY)
    core.add("leaves", given[1], SAMPLED)
    run(core, at)
    change(core, **STORY)
    core.add("late", given[3], SAMPLED)
    run(core, {})


def run(core: EngineCore, at: dict[int, Callable[[], object]]) -> None:
    """Until nothing is left to do; ``at``: what happens once that step was launched."""
    while core.has_work:
        at.pop(core.step_number, lambda: None)()
        core.step()
    core.idle()
    assert not at


def engine(scheduler: str, **options: Any) -> tuple[LLM, MemorySink]:
    return eagle_engine(STORY, scheduler=scheduler, **options)


def record(path: Path, hello: HelloEvent, events: Sequence[Event], *, with_requests: bool = True) -> Path:
    """As a recorder would, but for the bus."""
    writer = RecordingWriter(path, TOPICS, with_requests=with_requests)
    writer.begin(hello)
    for event in events:
        writer.write(event)
    writer.finish()
    return path


def played(scheduler: str, **options: Any) -> tuple[HelloEvent, list[Event]]:
    """The session's events, after its hello."""
    llm, sink = engine(scheduler, publish_tokens=True, **options)
    hello = hello_of(llm.assembly, "played", None, time.time())
    play(llm)
    return hello, sink.events
