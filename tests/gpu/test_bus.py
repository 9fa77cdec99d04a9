"""What the bus says of a device's steps: no trace of speculation where there is none, and nothing that costs a wait."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from engine.event_sink import MemorySink
from engine.llm import LLM
from tests.gpu.engines import CHAIN, DEVICE, TREE, device_engine, greedy, needs_graphs, prompts, steps_of, tiny

GIVEN = prompts(8)
TOKENS = 24


@needs_graphs
def test_a_threshold_of_zero_runs_what_an_engine_without_a_head_runs() -> None:
    """B54: neither draft nor verify, and the same graphs; what remains is the draft's sync. Its times are in the sweep:
    off over plain."""
    without, beside = MemorySink(), MemorySink()
    target, draft = tiny()
    plain, switched = device_engine((target, None), without), device_engine((target, draft), beside)
    switched.set_knobs(spec="auto", threshold=0)
    for llm in (plain, switched):
        llm.generate(GIVEN, greedy(TOKENS))
    for step in steps_of(beside):
        assert step.mode in ("plain", "mixed", "prefill")
        assert step.spec_info is None
        assert "draft" not in step.gpu_us
        assert set(step.widths) <= {"1"}
    assert [step.graph for step in steps_of(beside)] == [step.graph for step in steps_of(without)]


@needs_graphs
@pytest.mark.parametrize("sync", ["lazy", "eager"])
def test_keeping_the_draft_in_step_while_off_has_a_time_of_its_own(sync: str) -> None:
    """B55: a stage of its own on the bus, beside what waits. docs/architecture.md says what each policy does."""
    sink = MemorySink()
    llm = device_engine(tiny(), sink)
    llm.set_knobs(spec="off", draft_sync=sync)
    llm.generate(GIVEN, greedy(100))
    plain = [step for step in steps_of(sink) if step.mode == "plain"]
    assert sum(step.gpu_us.get("sync", 0) for step in plain) > 0
    waiting = [step.draft_lag for step in plain]
    assert (max(waiting) > 0) == (sync == "lazy")
    assert (max(step.draft_debt_bytes for step in plain) > 0) == (sync == "lazy")


@needs_graphs
@pytest.mark.parametrize("knobs", [{"spec": "off"}, {"spec": "on", **TREE}], ids=["off", "tree"])
def test_every_step_has_times_by_the_devices_clock(knobs: dict[str, str | int]) -> None:
    """Speculating or not, and how long the device waited for the step."""
    sink = MemorySink()
    llm = device_engine(tiny(), sink)
    llm.set_knobs(**knobs)
    llm.generate(GIVEN, greedy(TOKENS))
    decodes = [step for step in steps_of(sink) if step.mode in ("plain", "spec")][1:]
    assert decodes
    for step in decodes:
        assert {"run", "accept", "idle"} <= set(step.gpu_us)
        assert ("draft" in step.gpu_us) == (step.mode == "spec")


@contextmanager
def counted_waits() -> Iterator[list[str]]:
    """Where torch was made to wait for the device, in its own words; an event's `synchronize` is not among them."""
    found: list[str] = []
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield found
            found += [f"{entry.filename}:{entry.lineno}" for entry in caught if "synchroniz" in str(entry.message)]
    finally:
        torch.cuda.set_sync_debug_mode("default")


def decode(llm: LLM, steps: int) -> list[str]:
    """Waits in so many steps of decoding; what is captured and compiled on the way has been before."""
    for i, prompt in enumerate(GIVEN):
        llm.core.add(f"decode-{i}", prompt, greedy(200))
    while llm.core.scheduler.waiting or any(request.in_prefill for request in llm.core.scheduler.running):
        llm.core.step()
    for _ in range(steps):
        llm.core.step()
    with counted_waits() as waits:
        for _ in range(steps):
            llm.core.step()
    llm.core.abort_all()
    while llm.core.has_work:
        llm.core.step()
    return waits


@needs_graphs
@pytest.mark.parametrize("knobs", [{"spec": "off"}, {"spec": "on", **CHAIN}, {"spec": "on", **TREE}], ids=str)
def test_counting_acceptance_waits_for_nothing(knobs: dict[str, str | int]) -> None:
    """B62: no step waits for the device, watched or not. What watching costs in time is the check's stage `probe`."""
    for rows in (False, True):
        llm = device_engine(tiny(), MemorySink(rows=rows), scheduler="overlap")
        llm.set_knobs(**knobs)
        assert decode(llm, 20) == []


def test_the_hello_says_what_runs() -> None:
    from engine.identity import hello_of

    llm = device_engine(tiny())
    hello = hello_of(llm.assembly, "tiny", None, 0.0)
    assert hello.which["worker"]["value"] == "device"
    assert hello.model["device"] != "cpu" or DEVICE == "cpu"
