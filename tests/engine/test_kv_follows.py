"""What lies in the pools: the target's after every verify, the draft's after off windows, against a fresh prefill."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from engine.attention.dense import AttentionPlan, Segment
from engine.core import EngineCore
from engine.kv.pool import KvPool
from engine.kv.request_slots import RequestSlots
from engine.llm import LLM
from engine.models.llama import ForwardBatch, LlamaModel
from engine.request import Request
from engine.sampling_params import SamplingParams
from engine.spec.draft_sync import DraftKv
from engine.spec.eagle3_proposer import Eagle3Proposer
from engine.spec.scripted_proposer import ScriptedProposer
from tests.engine.tiny import DEEP, STORY, answers_of, prompts, reference, scripted_engine

LONG = SamplingParams(max_tokens=700, temperature=0.0, ignore_eos=True)


def fresh_prefill(
    model: LlamaModel, ids: Sequence[int], count: int, aux_layers: Sequence[int]
) -> tuple[KvPool, torch.Tensor | None]:
    """K, V and hidden states of the first ``count`` tokens, in one pass over an empty pool."""
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
    return pool, model.forward(batch, pool, aux_layers).aux


def committed_rows(core: EngineCore, pool: KvPool, request: Request, count: int) -> torch.Tensor:
    loc = core.ledger.slots_of(request.request_id).slots(0, count)
    return pool.data[:, :, loc]


def draft_kv(core: EngineCore) -> DraftKv:
    proposer = core.proposer
    if isinstance(proposer, ScriptedProposer):
        proposer = proposer._inner
    assert isinstance(proposer, Eagle3Proposer)
    return proposer.kv


def check_draft(core: EngineCore, request: Request, tolerance: float) -> None:
    """Every committed position's draft K and V equals what a fresh prefill of the same tokens gives."""
    kv = draft_kv(core)
    state = kv.states[request.request_id]
    _, aux = fresh_prefill(core.model, request.ids, request.committed, kv.head.shape.aux_layers)
    assert aux is not None
    pool = kv.head.make_pool(request.committed)
    inputs = kv.head.read(torch.tensor(request.ids[1 : request.committed + 1]), kv.head.fuse(aux))
    positions = torch.arange(request.committed)
    kv.head.write_kv(inputs, positions, positions, pool)
    kv.catch_up([state])
    assert state.written == request.committed
    found = committed_rows(core, kv.pool, request, request.committed)
    torch.testing.assert_close(found, pool.data, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("right", range(5))
@pytest.mark.parametrize("page_size", [1, 16])
def test_target_kv_equals_a_fresh_prefill_after_every_verify(right: int, page_size: int) -> None:
    """B37: j-drafts with j = 0..K, page 1 and 16, compared per token."""
    given = prompts(3, longest=20, seed=right)
    llm, _ = scripted_engine(answers_of(reference(given)), DEEP, right=right, page_size=page_size)
    core = llm.core
    requests = [core.add(f"r{i}", ids, SamplingParams(max_tokens=16, temperature=0.0)) for i, ids in enumerate(given)]
    verifies = 0
    with torch.inference_mode():
        while core.has_work:
            core.step()
            for request in requests:
                if request.is_finished or request.in_prefill or not request.verify_steps:
                    continue
                pool, _ = fresh_prefill(core.model, request.ids, request.committed, ())
                found = committed_rows(core, core.runner.pool, request, request.committed)
                torch.testing.assert_close(found, pool.data, rtol=1e-9, atol=1e-9)
                verifies += 1
    assert verifies > 5


@pytest.mark.parametrize("right", range(5))
def test_draft_kv_is_made_from_verified_hidden_states(right: int) -> None:
    """B18: after each verify the draft's committed K and V come from the target's features, not from its own."""
    given = prompts(2, longest=20, seed=right)
    llm, _ = scripted_engine(answers_of(reference(given)), STORY, right=right)
    core = llm.core
    requests = [core.add(f"r{i}", ids, SamplingParams(max_tokens=20, temperature=0.0)) for i, ids in enumerate(given)]
    with torch.inference_mode():
        while core.has_work:
            core.step()
            for request in requests:
                if not request.is_finished and not request.in_prefill:
                    check_draft(core, request, 1e-9)


def off_window(llm: LLM, request: Request, tokens: int) -> None:
    """Decode plainly for a while, then speculate for one step."""
    llm.set_knobs(spec="off")
    until = request.output_len + tokens
    while request.output_len < until:
        llm.core.step()
    llm.set_knobs(spec="on")
    llm.core.step()


@pytest.mark.parametrize("sync", ["lazy", "eager"])
def test_draft_kv_after_off_windows_of_64_and_500_tokens(sync: str) -> None:
    given = prompts(2, longest=40, seed=9)
    llm, _ = scripted_engine({}, {**STORY, "draft_sync": sync})
    requests = [llm.core.add(f"r{i}", ids, LONG) for i, ids in enumerate(given)]
    while any(request.in_prefill for request in requests):
        llm.core.step()
    with torch.inference_mode():
        for window in (64, 500):
            off_window(llm, requests[0], window)
            for request in requests:
                check_draft(llm.core, request, 1e-9)


def test_the_lag_is_bounded_while_lazy_and_gone_while_eager() -> None:
    """B38: the relation of draft and target lengths holds at every step (debug checks are on), also over chunks."""
    given = prompts(1, longest=300, seed=11)
    llm, _ = scripted_engine({}, {**STORY, "spec": "off"}, prefill_chunk=32)
    request = llm.core.add("r", given[0], LONG)
    lags = []
    assert llm.core.proposer is not None
    while request.output_len < 200:
        llm.core.step()
        lags.append(llm.core.proposer.lag("r"))
    assert max(lags) == 63
    llm.set_knobs(draft_sync="eager")
    llm.core.step()
    assert llm.core.proposer.lag("r") == 0
