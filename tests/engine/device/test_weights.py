"""Weights on their way to the device."""

from __future__ import annotations

import pytest
import torch

from engine.device.weights import Weights


def holding(**tensors: torch.Tensor) -> tuple[Weights, dict[str, torch.Tensor]]:
    checkpoint = dict(tensors)
    return Weights(checkpoint, torch.float32, torch.device("cpu")), checkpoint


def test_a_stack_is_its_pieces_one_behind_the_other() -> None:
    one, other = torch.randn(4, 3), torch.randn(2, 3)
    weights, checkpoint = holding(one=one, other=other)
    assert torch.equal(weights.stack("one", "other"), torch.cat([one, other]))
    assert checkpoint == {}
    assert weights.parameters == 18


def test_a_pair_is_its_rows_in_turn() -> None:
    gate, up = torch.arange(12.0).view(4, 3), -torch.arange(12.0).view(4, 3)
    weights, checkpoint = holding(gate=gate, up=up)
    assert torch.equal(weights.pair("gate", "up", 2), torch.cat([gate[:2], up[:2], gate[2:], up[2:]]))
    assert checkpoint == {}
    assert weights.parameters == 24


def test_a_pair_of_one_block_has_the_first_first() -> None:
    gate, up = torch.randn(4, 3), torch.randn(4, 3)
    weights, _ = holding(gate=gate, up=up)
    assert torch.equal(weights.pair("gate", "up", 4), torch.cat([gate, up]))


def test_a_transposed_matrix_is_contiguous() -> None:
    matrix = torch.randn(4, 3)
    weights, checkpoint = holding(matrix=matrix)
    turned = weights.take_transposed("matrix")
    assert torch.equal(turned, matrix.t())
    assert turned.is_contiguous()
    assert checkpoint == {}
    assert weights.parameters == 12


@pytest.mark.parametrize(("rows", "columns", "together"), [(2, 3, 2), (4, 1, 2), (4, 3, 3)])
def test_a_pair_that_does_not_fit_is_named(rows: int, columns: int, together: int) -> None:
    weights, _ = holding(gate=torch.zeros(4, 3), up=torch.zeros(rows, columns))
    with pytest.raises(ValueError, match=r"gate and up: shapes \[4, 3\] and .* expected the same"):
        weights.pair("gate", "up", together)
