"""The engine on the device says what the CPU's own worker says: tiny model, float32, both schedulers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.event_sink import MemorySink
from engine.gpu_check.exactness import switching
from engine.gpu_check.teacher_forcing import make_reference
from engine.llm import LLM, Completion
from engine.sampling_params import SamplingParams
from probes.events import StepEvent
from tests.gpu.engines import (
    CHAIN,
    DEEP,
    TREE,
    assert_near_ties_only,
    device_engine,
    greedy,
    host_reference,
    needs_graphs,
    prompts,
    steps_of,
    tiny,
    tokens_of,
)

GIVEN = prompts(12)
TOKENS = 24


@pytest.fixture(scope="module")
def expected() -> list[Completion]:
    return host_reference(tiny()[0], GIVEN, TOKENS)


@pytest.fixture(scope="module", params=["overlap", "sync"])
def llm(request: pytest.FixtureRequest) -> LLM:
    return device_engine(tiny(), scheduler=request.param)


def test_plain_steps_say_what_the_cpu_says(expected: list[Completion], llm: LLM) -> None:
    llm.set_knobs(spec="off")
    assert_near_ties_only(expected, llm)


@pytest.mark.parametrize("shape", [CHAIN, TREE, DEEP], ids=["chain", "tree", "deep"])
def test_speculating_says_what_the_cpu_says(expected: list[Completion], llm: LLM, shape: dict[str, int]) -> None:
    llm.set_knobs(spec="on", draft_sync="lazy", **shape)
    assert_near_ties_only(expected, llm)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_switched_before_every_step_it_says_the_same(expected: list[Completion], llm: LLM, seed: int) -> None:
    assert_near_ties_only(expected, llm, switching(seed))
    assert llm.core.ledger.pages_used == 0


@pytest.mark.parametrize("sync", ["eager", "sticky"])
def test_other_ways_of_draft_sync_say_the_same(expected: list[Completion], llm: LLM, sync: str) -> None:
    turns = iter(range(1 << 30))

    def before_step(llm: LLM) -> None:
        llm.set_knobs(spec="on" if next(turns) % 7 < 4 else "off", draft_sync=sync, **TREE)

    assert_near_ties_only(expected, llm, before_step)
    llm.set_knobs(draft_sync="lazy")


@pytest.mark.parametrize("attention", ["triton", "torch"])
@needs_graphs
def test_every_backend_says_the_same(expected: list[Completion], attention: str) -> None:
    llm = device_engine(tiny(), attention=attention)
    assert_near_ties_only(expected, llm)
    llm.set_knobs(spec="on", **TREE)
    assert_near_ties_only(expected, llm)


@pytest.mark.parametrize("shape", [CHAIN, TREE, DEEP], ids=["chain", "tree", "deep"])
def test_a_request_alone_says_the_same(expected: list[Completion], llm: LLM, shape: dict[str, int]) -> None:
    llm.set_knobs(spec="on", draft_sync="lazy", **shape)
    assert_near_ties_only(expected[:1], llm)


def test_a_prompt_of_several_chunks_says_the_same(llm: LLM) -> None:
    long = [[(5 * j) % 256 for j in range(400)], *GIVEN[:2]]
    expected = host_reference(tiny()[0], long, 12)
    for knobs in ({"spec": "off"}, {"spec": "on", **CHAIN}):
        llm.set_knobs(**knobs)
        assert_near_ties_only(expected, llm)


def test_drawn_text_is_the_same_on_off_and_switching(llm: LLM) -> None:
    params = [SamplingParams(max_tokens=16, temperature=0.9, top_p=0.9, seed=i, ignore_eos=True) for i in range(12)]
    llm.set_knobs(spec="off")
    expected = tokens_of(llm.generate(GIVEN, params))
    llm.set_knobs(spec="on", **TREE)
    assert tokens_of(llm.generate(GIVEN, params)) == expected
    assert tokens_of(llm.generate(GIVEN, params, switching(4))) == expected


def test_greedy_and_drawn_requests_do_not_disturb_each_other(expected: list[Completion], llm: LLM) -> None:
    params = [
        greedy(TOKENS) if i % 2 else SamplingParams(max_tokens=TOKENS, temperature=1.5, seed=i, ignore_eos=True)
        for i in range(12)
    ]
    llm.set_knobs(spec="on", **TREE)
    mixed = tokens_of(llm.generate(GIVEN, params))
    same = [mixed[i] == expected[i].token_ids for i in range(1, 12, 2)]
    assert sum(same) >= len(same) - 1  # a near-tie in one of them


def test_log_probabilities_are_the_cpus(expected: list[Completion], llm: LLM) -> None:
    llm.set_knobs(spec="on", **TREE)
    completions = make_reference(llm, GIVEN, TOKENS)
    compared = 0
    for completion, wanted in zip(completions, expected, strict=True):
        for ours, theirs in zip(completion.logprobs, wanted.logprobs, strict=True):
            if ours.top_ids != theirs.top_ids:
                break  # behind a near-tie
            assert ours.top == pytest.approx(theirs.top, abs=1e-3)
            compared += 1
    assert compared > len(GIVEN) * TOKENS // 2


def test_requests_that_leave_while_a_step_flies_free_what_they_held(expected: list[Completion], llm: LLM) -> None:
    llm.set_knobs(spec="on", **TREE)
    for i, prompt in enumerate(GIVEN):
        llm.core.add(f"leaver-{i}", prompt, greedy(TOKENS))
    for i in range(6):
        llm.core.step()
        llm.core.abort(f"leaver-{2 * i}")
    llm.core.abort_all()
    while llm.core.has_work:
        llm.core.step()
    assert llm.core.ledger.pages_used == 0
    assert_near_ties_only(expected, llm)


# -- graphs ----------------------------------------------------------------------------------------------------------

BUCKETS = (1, 2, 4, 8)


def graph_engine(scheduler: str = "overlap") -> tuple[LLM, MemorySink]:
    sink = MemorySink()
    return device_engine(tiny(), sink, scheduler=scheduler, graph_batch_sizes=BUCKETS, max_running=8), sink


@pytest.fixture(scope="module")
def eager() -> list[Completion]:
    """What the same kernels say when they are launched one by one, unpadded."""
    return make_reference(device_engine(tiny(), graphs=False), GIVEN[:8], TOKENS)


@needs_graphs
@pytest.mark.parametrize("count", [3, 5, 7])
@pytest.mark.parametrize("knobs", [{"spec": "off"}, {"spec": "on", **CHAIN}, {"spec": "on", **TREE}], ids=str)
def test_padded_batches_say_what_eager_says(eager: list[Completion], count: int, knobs: dict[str, str | int]) -> None:
    """B34, first half: batches of 3, 5 and 7 in graphs for 4 and 8."""
    llm, sink = graph_engine()
    llm.set_knobs(**knobs)
    assert_near_ties_only(eager[:count], llm)
    alike = [step for step in steps_of(sink) if list(step.widths.values()) == [count]]  # one width, so one batch
    decodes = [step for step in alike if step.mode in ("plain", "spec")]
    bucket = next(size for size in BUCKETS if size >= count)
    assert decodes
    assert {step.shapes.padded_bucket[0] for step in decodes if step.graph_hit} == {bucket}


@needs_graphs
@pytest.mark.parametrize("scheduler", ["overlap", "sync"])
@pytest.mark.parametrize("knobs", [{"spec": "off"}, {"spec": "on", **TREE}], ids=["off", "tree"])
def test_a_batch_that_ends_one_by_one_says_what_eager_says(
    eager: list[Completion], scheduler: str, knobs: dict[str, str | int]
) -> None:
    """B34, second half. Its report asks for ten minutes of it; this is 25 rounds, and memcheck runs over one more."""
    llm, _ = graph_engine(scheduler)
    llm.set_knobs(**knobs)
    lengths = [3 * i + 3 for i in range(8)]
    expected = [completion.token_ids[:length] for completion, length in zip(eager, lengths, strict=True)]
    different = 0
    for _ in range(25):
        got = tokens_of(llm.generate(GIVEN[:8], [greedy(length) for length in lengths]))
        different += sum(ours != theirs for ours, theirs in zip(got, expected, strict=True))
    assert different <= 25  # one near-tie, every time
    assert llm.core.ledger.pages_used == 0


@needs_graphs
def test_a_shape_that_was_not_captured_runs_and_is_captured_between_steps() -> None:
    llm, sink = graph_engine()
    llm.set_knobs(spec="on", **DEEP)
    first = tokens_of(llm.generate(GIVEN[:4], greedy(TOKENS)))
    misses = [step for step in steps_of(sink) if step.mode == "spec" and step.graph_hit is False]
    hits = [step for step in steps_of(sink) if step.mode == "spec" and step.graph_hit]
    assert misses
    assert hits
    assert misses[0].step < hits[0].step
    sink.events.clear()
    assert tokens_of(llm.generate(GIVEN[:4], greedy(TOKENS))) == first
    assert all(step.graph_hit for step in steps_of(sink) if step.mode == "spec")


@needs_graphs
def test_plain_steps_of_an_engine_with_a_head_run_in_decode_graphs() -> None:
    llm, sink = graph_engine()
    llm.generate(GIVEN[:4], greedy(TOKENS))
    plain = [step for step in steps_of(sink) if step.mode == "plain"]
    assert plain
    assert all(step.graph is not None and step.graph.startswith("decode/") for step in plain)


def sums_of(steps: list[StepEvent], pick: Callable[[StepEvent], int]) -> int:
    return sum(pick(step) for step in steps)


@pytest.mark.parametrize("knobs", [{"spec": "off"}, {"spec": "on", **TREE}], ids=["off", "tree"])
def test_counts_on_the_bus_add_up(knobs: dict[str, str | int]) -> None:
    sink = MemorySink()
    llm = device_engine(tiny(), sink)
    llm.set_knobs(**knobs)
    completions = llm.generate(GIVEN, greedy(TOKENS))
    steps = steps_of(sink)
    assert sums_of(steps, lambda step: step.emitted) == sum(len(each) for each in tokens_of(completions))
    assert all(step.slots_expected == step.slots_reserved == step.slots_written for step in steps)
