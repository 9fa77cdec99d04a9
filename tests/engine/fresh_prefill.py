"""The same tokens once more over empty pools: what keys, values and logits must equal."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.attention.dense import AttentionPlan, Segment
from engine.core import EngineCore
from engine.kv.pool import KvPool
from engine.kv.request_slots import RequestSlots
from engine.llm import LLM
from engine.models.llama import ForwardBatch, ForwardOutput, LlamaModel
from engine.request import Request
from engine.spec.draft_sync import DraftKv
from engine.spec.eagle3_proposer import Eagle3Proposer
from engine.spec.scripted_proposer import ScriptedProposer
from tests.engine.tiny import host_worker


def fresh_prefill(
    model: LlamaModel, ids: Sequence[int], count: int, aux_layers: Sequence[int] = ()
) -> tuple[KvPool, ForwardOutput]:
    """K, V, hidden states and the last logits of the first ``count`` tokens, in one pass over an empty pool."""
    pool = model.make_pool(count)
    slots = RequestSlots(count, [0])
    batch = ForwardBatch(
        input_ids=torch.tensor(ids[:count]),
        positions=torch.arange(count),
        out_cache_loc=torch.arange(count),
        attention=AttentionPlan([Segment(slots, 0, count)], pool, model.shape.num_heads),
        logit_rows=torch.tensor([count - 1]),
        capture_aux=bool(aux_layers),
    )
    return pool, model.forward(batch, pool, aux_layers)


def committed_rows(core: EngineCore, pool: KvPool, request: Request, count: int) -> torch.Tensor:
    loc = core.ledger.slots_of(request.request_id).slots(0, count)
    return pool.data[:, :, loc]


def draft_kv(core: EngineCore) -> DraftKv:
    proposer = host_worker(core).proposer
    if isinstance(proposer, ScriptedProposer):
        proposer = proposer._inner
    assert isinstance(proposer, Eagle3Proposer)
    return proposer.kv


def check_draft(core: EngineCore, request: Request, tolerance: float) -> None:
    """Every committed position's draft K and V equals what a fresh prefill of the same tokens gives.

    By the worker's view: with overlap the request is a step behind.
    """
    kv = draft_kv(core)
    state = kv.states[request.request_id]
    view = host_worker(core)._views[request.request_id]
    _, out = fresh_prefill(host_worker(core).model, view.ids, view.committed, kv.head.shape.aux_layers)
    assert out.aux is not None
    pool = kv.head.make_pool(view.committed)
    inputs = kv.head.read(torch.tensor(view.ids[1 : view.committed + 1]), kv.head.fuse(out.aux))
    positions = torch.arange(view.committed)
    kv.head.write_kv(inputs, positions, positions, pool)
    kv.catch_up([state])
    assert state.written == view.committed
    found = committed_rows(core, kv.pool, request, view.committed)
    torch.testing.assert_close(found, pool.data, rtol=tolerance, atol=tolerance)


def last_logits(llm: LLM, ids: Sequence[int]) -> torch.Tensor:
    """[1, vocab] behind ``ids``."""
    with torch.inference_mode():
        return fresh_prefill(host_worker(llm.core).model, ids, len(ids))[1].logits


def off_window(llm: LLM, request: Request, tokens: int) -> None:
    """Decode plainly for a while, then speculate for one step."""
    llm.set_knobs(spec="off")
    until = request.output_len + tokens
    while request.output_len < until:
        llm.core.step()
    llm.set_knobs(spec="on")
    llm.core.step()
