"""What a launch may do, and what the device worker says of a step."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine.device.graphs import GraphKey, GraphPool
from engine.device.llama import DeviceLlama
from engine.device.worker import DeviceWorker
from engine.host_worker import HostWorker
from engine.ipc import Failed
from engine.sampling_params import SamplingParams
from probes.events import AlertEvent
from probes.knobs import KnobError
from tests.engine.device.device_engines import device_engine, device_worker, with_graphs
from tests.engine.device.no_read_back import no_read_back
from tests.engine.tiny import CHAIN, DEEP, STORY, eagle_engine, prompts, reference, step_events, tokens

GREEDY = SamplingParams(max_tokens=12, temperature=0.0, ignore_eos=True)
DRAWN = SamplingParams(max_tokens=12, temperature=1.0, top_p=0.9, seed=3, ignore_eos=True, logprobs=2)


@pytest.mark.parametrize("shape", [STORY, CHAIN], ids=["tree", "chain"])
@pytest.mark.parametrize("sync", ["lazy", "eager"])
def test_a_launch_reads_nothing_back(shape: dict[str, Any], sync: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain, speculating, mixed and prefill steps; greedy and sampled rows; rings emptied at both ends."""
    launch = DeviceWorker.launch

    def guarded(self: DeviceWorker, *args: Any) -> Any:
        with no_read_back():
            return launch(self, *args)

    monkeypatch.setattr(DeviceWorker, "launch", guarded)
    llm, sink = device_engine({**shape, "draft_sync": sync}, prefill_chunk=24)
    steps = iter(range(1000))
    completions = llm.generate(
        prompts(5, longest=30),
        [GREEDY, DRAWN, GREEDY, DRAWN, GREEDY],
        lambda llm: llm.set_knobs(spec="on" if next(steps) % 4 < 2 else "off"),
    )
    assert all(completion.error is None for completion in completions)
    assert {event.mode for event in step_events(sink)} == {"plain", "prefill", "mixed", "spec"}


def test_attention_that_plans_on_the_host_needs_exact_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine lands a verify before it launches the next step; a worker that is not landed refuses."""
    llm, _ = device_engine(CHAIN, scheduler="overlap", debug_checks=False)
    attention = device_worker(llm).parts.attention
    plans: list[tuple[list[int], int, int]] = []  # lengths, width, bucket

    def plan(lengths: list[int], pages: list[list[int]], *, width: int, bucket: int, **sizes: int) -> None:
        assert all(
            len(owned) * sizes["page_size"] >= length + width for owned, length in zip(pages, lengths, strict=True)
        )
        plans.append((list(lengths), width, bucket))

    attention.needs_lengths, attention.plan = True, plan  # type: ignore[method-assign, assignment]
    given = prompts(2, longest=20)
    assert device_worker(llm).needs_landed
    assert tokens(llm.generate(given, GREEDY)) == tokens(reference(given, GREEDY))
    assert {(width, bucket) for _, width, bucket in plans} >= {(4, 2)}
    llm.core.add("late", given[0], GREEDY)
    llm.core.step()
    llm.core.step()  # a verify is in flight
    monkeypatch.setattr(DeviceWorker, "needs_landed", False)
    failed = [output for output in llm.core.step() if isinstance(output, Failed)]
    assert [output.message for output in failed if "needs exact lengths; late begins the step with" in output.message]


@pytest.mark.parametrize("chunk", [256, 16])
def test_log_probabilities_are_the_host_workers(chunk: int) -> None:
    """With short chunks some of them come from steps in which prompts and decodes run together."""
    given = prompts(4, longest=30, seed=2)
    sampling = [
        SamplingParams(max_tokens=12, temperature=t, seed=i, ignore_eos=True, logprobs=count)
        for i, (t, count) in enumerate([(0.0, 3), (1.0, 0), (0.0, None), (0.8, 5)])
    ]
    expected = reference(given, sampling)
    for knobs in ({"spec": "off"}, {"spec": "on", **STORY}):
        llm, sink = device_engine(knobs, prefill_chunk=chunk)
        for ours, theirs in zip(llm.generate(given, sampling), expected, strict=True):
            assert [report.top_ids for report in ours.logprobs] == [report.top_ids for report in theirs.logprobs]
            assert [x.chosen for x in ours.logprobs] == pytest.approx([x.chosen for x in theirs.logprobs], abs=1e-9)
            assert [x.top for x in ours.logprobs] == [pytest.approx(x.top, abs=1e-9) for x in theirs.logprobs]
        is_mixed = any(event.mode == "mixed" for event in step_events(sink))
        assert is_mixed == (chunk == 16 and knobs["spec"] == "off")


@pytest.mark.parametrize("scheduler", ["sync", "overlap"])
def test_rows_of_requests_that_left_serve_others(scheduler: str) -> None:
    """Aborted while a step flies, and more requests in all than rows: nobody inherits anything."""
    given = prompts(12, longest=30, seed=5)
    expected = tokens(reference(given, GREEDY))
    llm, _ = device_engine(STORY, scheduler=scheduler, max_running=3, prefill_chunk=32)
    for i, prompt in enumerate(given[:3]):
        llm.core.add(f"leaver-{i}", prompt, DRAWN)
    for i in range(3):
        llm.core.step()
        llm.core.step()
        llm.core.abort(f"leaver-{i}")
    assert tokens(llm.generate(given, GREEDY)) == expected
    assert llm.core.ledger.pages_used == 0
    assert llm.core.worker.used_slots() == 0


def test_a_step_that_breaks_in_its_launch_costs_its_requests_only(monkeypatch: pytest.MonkeyPatch) -> None:
    given = prompts(3, longest=20, seed=6)
    llm, _ = device_engine({"spec": "off"})
    sound = iter([False])

    def run(self: GraphPool, key: GraphKey, bound: int) -> bool:
        if not next(sound, True):
            raise RuntimeError("no such kernel")
        return run_it(self, key, bound)

    run_it = GraphPool.run
    monkeypatch.setattr(GraphPool, "run", run)
    for i, prompt in enumerate(given):
        llm.core.add(f"r{i}", prompt, GREEDY)
    failed = [output for _ in range(2) for output in llm.core.step() if isinstance(output, Failed)]
    assert len(failed) == 3
    assert tokens(llm.generate(given, GREEDY)) == tokens(reference(given, GREEDY))


@pytest.mark.parametrize("accept", [1.0, 2.5, 4.0])
def test_simulated_acceptance_keeps_what_the_host_worker_keeps(accept: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths by seed and position; the text is nonsense, its length and the counts are not."""
    given = prompts(3, longest=20, seed=7)
    sampling = [SamplingParams(max_tokens=24, temperature=0.0, seed=s, ignore_eos=True) for s in range(3)]
    found = []
    for worker in ("host", "device"):
        llm, sink = eagle_engine(CHAIN, worker=worker, max_model_len=128, simulate_accept=accept, debug_checks=True)
        monkeypatch.setattr(HostWorker, "even_widths", True)  # as the device worker asks for
        assert all(len(c.token_ids) == 24 for c in llm.generate(given, sampling))
        found.append([(event.verified, event.correct_drafts) for event in step_events(sink)])
    assert found[0] == found[1]


@pytest.mark.parametrize("scheduler", ["sync", "overlap"])
def test_a_step_that_speculates_has_one_width(scheduler: str) -> None:
    """Requests that end one by one: the last token of each is verified along with the others, in their pass."""
    given = prompts(5, longest=20, seed=8)
    sampling = [SamplingParams(max_tokens=count, temperature=0.0, ignore_eos=True) for count in (5, 8, 11, 14, 17)]
    llm, sink = device_engine(CHAIN, scheduler=scheduler)
    assert tokens(llm.generate(given, sampling)) == tokens(reference(given, sampling))
    steps = step_events(sink)
    assert {len(event.widths) for event in steps if event.mode == "spec"} == {1}
    assert any(event.mode == "plain" for event in steps)  # a last token that nobody verifies beside
    assert all(event.slots_expected == event.slots_reserved == event.slots_written for event in steps)


def test_chunks_and_plain_decodes_share_a_forward(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of plain decodes, of chunks, or of both reads the target's weights once."""
    forward, passes = DeviceLlama.forward, []

    def counted(self: DeviceLlama, ids: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        passes.append(ids.shape[0])
        return forward(self, ids, *args, **kwargs)

    monkeypatch.setattr(DeviceLlama, "forward", counted)
    llm, sink = device_engine({"spec": "off"}, prefill_chunk=16)
    given = prompts(6, longest=40, seed=9)
    assert tokens(llm.generate(given, GREEDY)) == tokens(reference(given, GREEDY))
    steps = step_events(sink)
    assert {event.mode for event in steps} == {"plain", "prefill", "mixed"}
    assert passes == [event.slots_written for event in steps]
    assert any(event.mode == "mixed" and event.emitted == event.requests for event in steps)  # no prompt ended in it


def test_mixed_steps_under_attention_that_plans_on_the_host() -> None:
    """It has planned for the decodes before they run along with the chunks."""
    llm, sink = device_engine({"spec": "off"}, prefill_chunk=16)
    attention = device_worker(llm).parts.attention
    planned: list[int] = []

    def plan(lengths: list[int], pages: list[list[int]], **sizes: int) -> None:
        planned.append(len(lengths))

    attention.needs_lengths, attention.plan = True, plan  # type: ignore[method-assign, assignment]
    given = prompts(6, longest=40, seed=9)
    assert tokens(llm.generate(given, GREEDY)) == tokens(reference(given, GREEDY))
    steps = step_events(sink)
    assert any(event.mode == "mixed" for event in steps)
    assert planned == [event.requests for event in steps if event.requests]


def test_trees_beside_a_request_that_keeps_no_draft() -> None:
    """draft_sync=sticky: two widths in one step, and the one that is stuck stays one wide to its last token."""
    given = prompts(3, longest=20, seed=11)
    sampling = [SamplingParams(max_tokens=count, temperature=0.0, ignore_eos=True) for count in (20, 14, 9)]
    llm, sink = device_engine({**CHAIN, "draft_sync": "sticky", "spec": "off"})
    llm.core.add("stuck", given[0], sampling[0])
    for _ in range(3):
        llm.core.step()
    llm.set_knobs(spec="on")
    found: dict[str, list[int]] = {}
    for name, prompt, params in zip(("second", "third"), given[1:], sampling[1:], strict=True):
        llm.core.add(name, prompt, params)
    while llm.core.has_work:
        for given_out in llm.core.step():
            assert not isinstance(given_out, Failed)
            found.setdefault(given_out.request_id, []).extend(given_out.token_ids)
    expected = tokens(reference(given, sampling))
    assert [found["second"], found["third"]] == expected[1:]
    assert found["stuck"] == expected[0][-len(found["stuck"]) :]
    widths = [event.widths for event in step_events(sink) if event.mode == "spec"]
    assert {"4": 2, "1": 1} in widths
    assert all(width.get("1") == 1 for width in widths)


def test_last_tokens_stay_one_wide_where_their_trees_have_no_room() -> None:
    """Two pages of 8 and no more: a tree behind the last token of the first request would need another one."""
    llm, sink = device_engine(CHAIN, page_size=8, kv_tokens=32, max_model_len=32)
    given = [[1] * 8, [2] * 3]
    sampling = [SamplingParams(max_tokens=count, temperature=0.0, ignore_eos=True) for count in (9, 12)]
    assert tokens(llm.generate(given, sampling)) == tokens(reference(given, sampling))
    steps = step_events(sink)
    assert {"4": 1, "1": 1} in [event.widths for event in steps]
    assert all(event.slots_expected == event.slots_reserved == event.slots_written for event in steps)
    assert llm.core.ledger.pages_used == 0


@pytest.mark.parametrize(
    ("knobs", "says"),
    [
        ({"steps": 6, "topk": 5, "draft_tokens": 65}, "draft_tokens<=64"),
        ({"steps": 16, "topk": 5, "draft_tokens": 16}, "topk \\* \\(steps - 1\\), got 75"),
    ],
)
def test_knobs_that_the_device_cannot_serve_are_refused_with_the_rule(knobs: dict[str, int], says: str) -> None:
    llm, _ = device_engine(DEEP)
    with pytest.raises(KnobError, match=says):
        llm.set_knobs(**knobs)


def test_shapes_and_slots_are_those_of_the_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    with_graphs(monkeypatch)
    llm, sink = device_engine(CHAIN, graph_batch_sizes=(4,), max_running=4)
    llm.generate(prompts(3, longest=20), GREEDY)
    event = next(event for event in step_events(sink) if event.mode == "spec" and event.requests == 3)
    assert event.shapes.input_ids == event.shapes.out_cache_loc == [16]  # three requests and one that pads
    assert event.shapes.hidden_states == [16, 3 * 64]
    assert event.shapes.padded_bucket == [4, 4]
    assert (event.slots_written, event.graph, event.graph_hit) == (12, "verify/4x4", True)


def test_without_graphs_a_step_names_none() -> None:
    llm, sink = device_engine(CHAIN)
    llm.generate(prompts(1, longest=10), GREEDY)
    assert {(event.graph, event.graph_hit) for event in step_events(sink)} == {(None, None)}


def test_a_width_whose_buffers_do_not_fit_is_refused_with_those_that_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    llm, _ = device_engine(CHAIN)
    llm.generate(prompts(1, longest=10), GREEDY)
    monkeypatch.setattr(DeviceWorker, "_free_memory", lambda self: 1 << 20)
    llm.set_knobs(topk=2, steps=3, draft_tokens=4)  # as wide as before
    with pytest.raises(KnobError, match=r"draft_tokens=16 needs buffers of .* ready: draft_tokens of 4"):
        llm.set_knobs(**STORY)


@pytest.mark.parametrize("knobs", [{"spec": "off"}, CHAIN, STORY], ids=["plain", "chain", "tree"])
def test_slots_written_are_those_that_the_device_worked_out(knobs: dict[str, Any]) -> None:
    """A third count, from a third place: a page table on the device that lost a page shows in the same step."""
    llm, sink = device_engine(knobs, scheduler="sync")
    core, state = llm.core, device_worker(llm).parts.state
    core.add("r", prompts(1, longest=20, seed=5)[0], GREEDY)
    core.step()
    state.pages[:] = state.pages[state.pad_row].clone()
    [failed] = core.step()
    assert isinstance(failed, Failed)
    alert = next(event for event in sink.events if isinstance(event, AlertEvent))
    assert (alert.code, alert.data["quantity"], alert.data["found"]) == ("plan_mismatch", "slots written", 0)
    assert alert.data["found_by"] == "engine.device.launched:LaunchedStep.slots_written"
    assert core.ledger.pages_used == 0
