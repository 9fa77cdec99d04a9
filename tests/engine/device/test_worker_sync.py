"""The draft follows on the device: what lies in both pools, and what waits, step by step."""

from __future__ import annotations

import pytest
import torch

from engine.sampling_params import SamplingParams
from tests.engine.device.device_engines import check_pools, device_engine, scripted_device_engine
from tests.engine.tiny import DEEP, STORY, answers_of, prompts, reference, switch_at_random

LONG = SamplingParams(max_tokens=100, temperature=0.0, ignore_eos=True)
SHORT = SamplingParams(max_tokens=16, temperature=0.0, ignore_eos=True)


@pytest.mark.parametrize("right", [0, 1, 3])
@pytest.mark.parametrize("page_size", [1, 16])
def test_both_pools_equal_a_fresh_prefill_after_every_verify(right: int, page_size: int) -> None:
    """B18, B37: accepted paths are moved to the front, and the draft's K and V come from the target's features."""
    given = prompts(2, longest=20, seed=right)
    llm, _ = scripted_device_engine(answers_of(reference(given, SHORT)), DEEP, right=right, page_size=page_size)
    requests = [llm.core.add(f"r{i}", ids, SHORT) for i, ids in enumerate(given)]
    with torch.inference_mode():
        while llm.core.has_work:
            llm.core.step()
            for request in requests:
                if not request.is_finished and request.committed:
                    check_pools(llm, request)


@pytest.mark.parametrize("sync", ["lazy", "eager"])
def test_both_pools_equal_a_fresh_prefill_while_switching(sync: str) -> None:
    given = prompts(3, longest=30, seed=2)
    llm, _ = scripted_device_engine(
        answers_of(reference(given, SHORT)), {**STORY, "draft_sync": sync}, right=1, prefill_chunk=16
    )
    requests = [llm.core.add(f"r{i}", ids, SHORT) for i, ids in enumerate(given)]
    before_step = switch_at_random(4)
    with torch.inference_mode():
        while llm.core.has_work:
            before_step(llm)
            llm.core.step()
            for request in requests:
                if not request.is_finished and request.committed:
                    check_pools(llm, request)


def test_the_lag_is_bounded_while_lazy_gone_while_eager_and_gone_before_a_draft() -> None:
    """B38: debug checks hold written + waiting against the committed length at every step."""
    llm, _ = device_engine({**STORY, "spec": "off"})
    request = llm.core.add("r", prompts(1, longest=20, seed=11)[0], LONG)
    lags = []
    while request.output_len < 75:
        llm.core.step()
        lags.append(llm.core.worker.lag("r"))
    assert max(lags) == 63
    assert llm.core.worker.debt_bytes() == lags[-1] * 3 * 64 * 8  # three boundaries of 64 in float64
    with torch.inference_mode():
        check_pools(llm, request)
        llm.set_knobs(draft_sync="eager")
        llm.core.step()
        assert llm.core.worker.lag("r") == 0
        llm.set_knobs(draft_sync="lazy")
        llm.core.step()
        assert llm.core.worker.lag("r") == 1
        llm.set_knobs(spec="on")
        llm.core.step()
        assert llm.core.worker.lag("r") == 0
        check_pools(llm, request)


def test_rings_that_are_half_full_are_emptied_along_with_a_full_one() -> None:
    llm, _ = device_engine({**STORY, "spec": "off"})
    ids = prompts(3, longest=10, seed=12)
    for name, steps in (("a", 30), ("b", 20), ("c", 0)):
        llm.core.add(name, ids.pop(), LONG)
        for _ in range(steps):
            llm.core.step()
    seen: list[list[int]] = []
    while not seen or seen[-1][0] != 0:
        llm.core.step()
        seen.append([llm.core.worker.lag(name) for name in "abc"])
    assert seen[-1] == [0, 0, 14]
    assert seen[-2] == [63, 33, 13]


def test_a_request_that_stays_plain_costs_the_draft_nothing() -> None:
    llm, _ = device_engine({**STORY, "draft_sync": "sticky"})
    request = llm.core.add("r", prompts(1, longest=20, seed=13)[0], LONG)
    llm.core.step()
    llm.core.step()
    assert llm.core.worker.used_slots() == request.committed
    llm.set_knobs(spec="off")
    llm.core.step()
    assert request.stays_plain
    assert (llm.core.worker.used_slots(), llm.core.worker.lag("r"), llm.core.worker.debt_bytes()) == (0, 0, 0)
