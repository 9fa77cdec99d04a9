"""Drawing one token: filters, ties, the edges of the draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.keyed_uniform import keyed_uniform
from engine.sampler import draw, greedy, inverse_cdf, probabilities, report_logprobs
from engine.sampling_params import SamplingParams

LOGITS = torch.tensor([[math.log(p) for p in (0.1, 0.4, 0.2, 0.3)]])


def probs(**params: float) -> list[float]:
    rows: list[float] = probabilities(LOGITS, [SamplingParams(**params)])[0].tolist()  # type: ignore[arg-type]
    return rows


def test_filters_keep_what_they_should() -> None:
    assert probs() == pytest.approx([0.1, 0.4, 0.2, 0.3])
    assert probs(top_k=2) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert probs(top_p=0.5) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert probs(top_p=0.39) == pytest.approx([0, 1, 0, 0])
    assert probs(min_p=0.6) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert probs(top_k=3, top_p=0.5) == pytest.approx([0, 4 / 7, 0, 3 / 7])
    assert probs(top_k=100) == pytest.approx([0.1, 0.4, 0.2, 0.3])
    assert probs(temperature=0.5) == pytest.approx([p * p / 0.3 for p in (0.1, 0.4, 0.2, 0.3)])


def test_the_smallest_values_that_are_allowed_keep_the_likeliest_token() -> None:
    """A denormal makes quotients overflow and products vanish; one such request must not fail a whole step."""
    least = math.ulp(0.0)
    assert probs(temperature=least) == [0, 1, 0, 0]
    assert probs(top_p=least) == [0, 1, 0, 0]
    assert probs(top_p=least, top_k=1) == [0, 1, 0, 0]
    assert probs(temperature=least, top_p=least, min_p=least, top_k=1) == [0, 1, 0, 0]


def test_rows_of_one_batch_keep_their_own_parameters() -> None:
    rows = probabilities(LOGITS.expand(3, -1), [SamplingParams(), SamplingParams(top_k=1), SamplingParams(top_p=0.5)])
    assert rows[0].tolist() == pytest.approx([0.1, 0.4, 0.2, 0.3])
    assert rows[1].tolist() == pytest.approx([0, 1, 0, 0])
    assert rows[2].tolist() == pytest.approx([0, 4 / 7, 0, 3 / 7])


def test_a_token_without_probability_is_never_drawn_whatever_the_coin() -> None:
    """B17: not even with a coin of exactly 0, nor just below 1."""
    row = torch.tensor([[0.0, 0.5, 0.0, 0.5, 0.0]], dtype=torch.float64)
    coins = torch.tensor([0.0, 0.25, 0.5, 1 - 2**-53], dtype=torch.float64)
    assert inverse_cdf(row.expand(4, -1), coins).tolist() == [1, 1, 3, 3]


def test_greedy_takes_the_lowest_id_of_a_tie() -> None:
    assert greedy(torch.tensor([[1.0, 3.0, 3.0, 2.0], [5.0, 5.0, 5.0, 5.0]])).tolist() == [1, 0]


def test_greedy_and_sampled_rows_share_a_batch() -> None:
    tokens = draw(
        LOGITS.expand(4, -1), [SamplingParams(temperature=0.0)] * 2 + [SamplingParams()] * 2, [1, 2, 3, 3], [7] * 4
    )
    assert tokens[:2].tolist() == [1, 1]
    assert tokens[2] == tokens[3]


def test_keyed_draws_are_uniform_and_depend_on_both_keys() -> None:
    draws = keyed_uniform(np.repeat(np.arange(200), 100), np.tile(np.arange(100), 200))
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    counts = np.histogram(draws, bins=20, range=(0, 1))[0]
    statistic = ((counts - 1000.0) ** 2 / 1000.0).sum()
    assert float(torch.special.gammaincc(torch.tensor(9.5), torch.tensor(statistic / 2).float())) > 1e-3
    assert len(np.unique(draws)) == 20_000
    by_seed = draws.reshape(200, 100)
    assert abs(np.corrcoef(by_seed[:-1].ravel(), by_seed[1:].ravel())[0, 1]) < 0.03
    assert keyed_uniform([5], [9])[0] == keyed_uniform([5, 6], [9, 9])[0]


def test_logprobs_are_of_the_models_own_distribution() -> None:
    report = report_logprobs(LOGITS, [2], 3)[0]
    assert report.chosen == pytest.approx(math.log(0.2))
    assert report.top_ids == [1, 3, 2]
    assert report.top == pytest.approx([math.log(0.4), math.log(0.3), math.log(0.2)])
    assert report_logprobs(LOGITS, [0], 0)[0].top == []
