"""Tiny engines on the device worker, on the CPU: what its tests share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from engine import device_assembly
from engine.attention.backend import ExtendBatch
from engine.device.graphs import Program, Replay
from engine.device.parts import extending
from engine.device.worker import DeviceWorker
from engine.event_sink import MemorySink
from engine.kernels.tree import TreeBuffers
from engine.llm import LLM
from engine.request import Request
from engine.request_view import RequestView
from engine.spec.choice import SpecChoice
from engine.spec.draft_tree import DraftTrees
from engine.spec.scripted_proposer import ORACLE, ScriptedProposer
from tests.engine.tiny import Answers, eagle_engine, tiny_target


def device_engine(knobs: Mapping[str, Any] | None = None, **options: Any) -> tuple[LLM, MemorySink]:
    """float64, the real head, invariants checked after every step. A context in which padding to it is cheap."""
    return eagle_engine(knobs, **{"worker": "device", "max_model_len": 128, **options})


def device_worker(llm: LLM) -> DeviceWorker:
    assert isinstance(llm.core.worker, DeviceWorker)
    return llm.core.worker


def scripted_device_engine(
    answers: Answers, knobs: Mapping[str, Any] | None = None, *, right: int = ORACLE, **options: Any
) -> tuple[LLM, MemorySink]:
    """Drafts that are right to a depth, in place of the head's; the head's K and V are kept in step all the same."""
    llm, sink = device_engine(knobs, **options)
    worker = device_worker(llm)
    script = ScriptedProposer(answers, tiny_target().shape.vocab_size, right=right)

    def grow(rows: torch.Tensor, steps: int, topk: int, out: TreeBuffers, bound: int) -> None:
        """Reads the state, as no real part may."""
        state = worker.parts.state
        views = {row.index: _view(row.request, state.lens[row.index], state.tokens[row.index]) for row in worker.rows}
        choice = SpecChoice(True, "", "", steps, topk, out.tokens.shape[1])
        for place, index in enumerate(rows.tolist()):
            if index != state.pad_row:
                _fill(out, place, script.propose([views[index]], choice))

    worker.programs.grow = grow
    return llm, sink


def _view(request: Request, length: torch.Tensor, newest: torch.Tensor) -> RequestView:
    """As long as the device has it; the tokens between prompt and newest do not matter to a script."""
    between = int(length) - request.prompt_len
    ids = [*request.ids[: request.prompt_len], *[0] * between, int(newest)]
    return RequestView(request.request_id, request.prompt_len, ids, request.sampling, request.seed, int(length))


def _fill(out: TreeBuffers, place: int, trees: DraftTrees) -> None:
    out.tokens[place], out.parents[place], out.depths[place] = trees.tokens[0], trees.parents[0], trees.depths()[0]
    bits = 1 << torch.arange(trees.width)
    out.masks[place] = (trees.visibility()[0] * bits).sum(dim=1)


class RecordingStandIn:
    """Replays by running the program again: everything of graphs but CUDA."""

    def __init__(self) -> None:
        self.memory = 0
        self.recorded = 0

    def record(self, program: Program, bound: int) -> Replay:
        program(bound)
        self.recorded += 1
        return lambda: program(bound)


def with_graphs(monkeypatch: pytest.MonkeyPatch) -> RecordingStandIn:
    """Device engines made from now on pad their batches and record what they run."""
    recorder = RecordingStandIn()

    class Recording(DeviceWorker):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **{**options, "recorder": recorder})

    monkeypatch.setattr(device_assembly, "DeviceWorker", Recording)
    return recorder


def fresh_kv(worker: DeviceWorker, ids: Sequence[int], count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V of the first ``count`` tokens in one prefill over empty pools: of the target and of the draft, each
    [2, layers, count, kv_heads, head_dim]."""
    parts = worker.parts
    assert parts.draft is not None
    head, page_size = parts.draft.head, parts.state.page_size
    pages = -(-count // page_size)
    pool, draft_pool = parts.model.make_pool(pages * page_size, page_size), head.make_pool(pages * page_size, page_size)
    positions, tokens = torch.arange(count), torch.tensor(ids)
    batch = ExtendBatch(
        rows=torch.zeros(1, dtype=torch.int64),
        starts=torch.zeros(1, dtype=torch.int32),
        cu_q=torch.tensor([0, count], dtype=torch.int32),
        max_q=count,
        pages=torch.arange(pages, dtype=torch.int32)[None],
        page_size=page_size,
        host_pages=[list(range(pages))],
        host_lengths=[count],
        host_q=[count],
    )
    attend = extending(parts.attention, pool, batch)
    _, aux = parts.model.forward(tokens[:count], positions, positions, attend, pool, aux_layers=parts.aux_layers)
    assert aux is not None
    inputs = head.read(tokens[1 : count + 1], head.fuse(aux))
    head.write_kv(inputs, positions, positions, draft_pool)
    return torch.stack([pool.k, pool.v])[:, :, :count], torch.stack([draft_pool.k, draft_pool.v])[:, :, :count]


def kv_of(llm: LLM, request: Request, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V of the request's first ``count`` positions, as `fresh_kv`."""
    worker = device_worker(llm)
    assert worker.parts.draft is not None
    loc = llm.core.ledger.slots_of(request.request_id).slots(0, count)
    target, draft = worker.parts.pool, worker.parts.draft.pool
    return torch.stack([target.k, target.v])[:, :, loc], torch.stack([draft.k, draft.v])[:, :, loc]


def check_pools(llm: LLM, request: Request) -> None:
    """Every committed position's K and V equal a fresh prefill's, in both pools; the draft's as far as it is."""
    committed = request.committed
    written = committed - llm.core.worker.lag(request.request_id)
    target, draft = fresh_kv(device_worker(llm), request.ids, committed)
    found_target, found_draft = kv_of(llm, request, committed)
    torch.testing.assert_close(found_target, target, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found_draft[:, :, :written], draft[:, :, :written], rtol=1e-9, atol=1e-9)
