"""Draws on the device are engine/sampler.py's, number for number."""

from __future__ import annotations

import pytest
import torch

from engine import sampler
from engine.device import sampling
from engine.device.state import DeviceState
from engine.sampling_params import SamplingParams
from tests.engine.device.device_engines import device_engine
from tests.engine.tiny import STORY, prompts, tokens

CPU = torch.device("cpu")
VOCAB = 50

PARAMS = [
    SamplingParams(temperature=1.0),
    SamplingParams(temperature=0.7, top_k=5),
    SamplingParams(temperature=1.5, top_p=0.8, min_p=0.02),
    SamplingParams(temperature=1e-308, top_k=VOCAB + 10, top_p=1e-12),
    SamplingParams(temperature=0.9, top_k=3, top_p=0.5, min_p=0.3),
]


def state_of(params: list[SamplingParams]) -> tuple[DeviceState, torch.Tensor]:
    """Rows in another order than the requests."""
    state = DeviceState(8, 1, 16, 0, 0, CPU, torch.float64, scrap_page=0)
    rows = torch.tensor([6, 1, 3, 0, 5][: len(params)])
    for row, p in zip(rows.tolist(), params, strict=True):
        state.temperature[row], state.top_k[row] = p.temperature, p.top_k
        state.top_p[row], state.min_p[row] = p.top_p, p.min_p
        state.seeds[row] = 100 + row
    return state, rows


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_distributions_are_the_samplers(dtype: torch.dtype) -> None:
    logits = (torch.randn(5, VOCAB, generator=torch.Generator().manual_seed(1)) * 3).to(dtype)
    logits[0, 3] = logits[0, 4]  # ties are kept or dropped together
    state, rows = state_of(PARAMS)
    found = sampling.probabilities(logits, state, rows, is_filtered=True)
    assert torch.equal(found, sampler.probabilities(logits, PARAMS))


def test_filters_of_others_change_nothing_for_a_request_without() -> None:
    logits = torch.randn(1, VOCAB, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    state, rows = state_of(PARAMS[:1])
    plain = sampling.probabilities(logits, state, rows, is_filtered=False)
    assert torch.equal(sampling.probabilities(logits, state, rows, is_filtered=True), plain)
    assert torch.equal(plain, sampler.probabilities(logits, PARAMS[:1]))


def test_tokens_are_the_samplers() -> None:
    logits = torch.randn(5, VOCAB, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    state, rows = state_of(PARAMS)
    for position in range(50):
        positions = torch.arange(5) + position
        found = sampling.draw(logits, state, rows, positions, is_filtered=True)
        seeds = (rows + 100).tolist()
        assert found.tolist() == sampler.draw(logits, PARAMS, seeds, positions.tolist()).tolist()


@pytest.mark.parametrize(
    ("params", "filtered"), [(PARAMS[:1], False), (PARAMS[:2], True), ([SamplingParams(top_p=0.5)], True), ([], False)]
)
def test_sorting_is_asked_for_only_where_somebody_filters(params: list[SamplingParams], filtered: bool) -> None:
    assert sampling.is_filtered(params) is filtered


def test_draws_in_pieces_are_the_draws_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = prompts(4, longest=20, seed=2)
    params = [SamplingParams(max_tokens=8, temperature=1.0, top_p=0.9, seed=i, ignore_eos=True) for i in range(4)]
    llm, _ = device_engine(STORY)
    at_once = tokens(llm.generate(given, params))
    monkeypatch.setattr(sampling, "MOST_NUMBERS", 1)
    assert tokens(llm.generate(given, params)) == at_once
