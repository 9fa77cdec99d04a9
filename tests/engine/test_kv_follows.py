"""What lies in the pools: the target's after every verify, the draft's after off windows, against a fresh prefill."""

from __future__ import annotations

import pytest
import torch

from engine.sampling_params import SamplingParams
from tests.engine.fresh_prefill import check_draft, committed_rows, fresh_prefill, off_window
from tests.engine.tiny import DEEP, STORY, answers_of, both_schedulers, host_worker, prompts, reference, scripted_engine

pytestmark = both_schedulers

LONG = SamplingParams(max_tokens=700, temperature=0.0, ignore_eos=True)


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
                pool, _ = fresh_prefill(host_worker(core).model, request.ids, request.committed)
                found = committed_rows(core, host_worker(core).runner.pool, request, request.committed)
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
    while request.output_len < 200:
        llm.core.step()
        lags.append(llm.core.worker.lag("r"))
    assert max(lags) == 63
    llm.set_knobs(draft_sync="eager")
    llm.core.step()
    assert llm.core.worker.lag("r") == 0
