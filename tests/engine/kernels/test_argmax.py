"""Greedy choice."""

from __future__ import annotations

import pytest
import torch

from engine.kernels import argmax
from engine.kernels.argmax import greedy
from engine.sampler import greedy as host_greedy
from tests.engine.kernels import comparisons


@pytest.mark.parametrize("dtype", comparisons.DTYPES)
@pytest.mark.parametrize(("n", "vocab"), [(2, 9000), (2, 2049), (3, 5), (1, 1)])
def test_the_kernel_equals_the_reference(interpreted: None, n: int, vocab: int, dtype: torch.dtype) -> None:
    comparisons.greedys(n, vocab, dtype, "cpu")


@pytest.mark.parametrize("programs", [1, 9])
def test_with_more_rows_than_programs_a_row_is_one_part(
    interpreted: None, monkeypatch: pytest.MonkeyPatch, programs: int
) -> None:
    monkeypatch.setattr(argmax, "PROGRAMS", programs)
    comparisons.greedys(3, 9000, torch.float32, "cpu")


def test_the_kernel_chooses_as_the_host_worker_does(interpreted: None) -> None:
    logits = comparisons.integers(-5, 5, 3, 49152).float()
    assert torch.equal(greedy(logits), host_greedy(logits))


def test_tokens_go_where_they_are_asked_to(interpreted: None) -> None:
    logits, out = comparisons.made(2, 3000, dtype=torch.float32), torch.zeros(4, dtype=torch.int64)
    assert greedy(logits, out[1:3]).data_ptr() == out[1:].data_ptr()
    assert out.tolist() == [0, *logits.argmax(dim=-1).tolist(), 0]


def test_no_rows_give_no_tokens(interpreted: None) -> None:
    assert greedy(torch.zeros(0, 100)).tolist() == []


def test_nan_gives_some_token(interpreted: None) -> None:
    logits = torch.full((2, 3000), float("nan"))
    logits[1, 2500] = 1.0
    all_nan, one_number = greedy(logits).tolist()
    assert 0 <= all_nan < 3000
    assert one_number == 2500


def test_rows_may_lie_apart(interpreted: None) -> None:
    logits = comparisons.made(4, 300, dtype=torch.float32)
    assert torch.equal(greedy(logits[::2, :200]), logits[::2, :200].argmax(dim=-1))
