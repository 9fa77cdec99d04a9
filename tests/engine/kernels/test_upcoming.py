"""Slots and positions of the next tokens."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.upcoming import upcoming
from tests.engine.kernels import comparisons


def test_a_plain_token_has_the_position_of_its_slot() -> None:
    pages, lens = torch.tensor([[5, 7], [2, 9]], dtype=torch.int32), torch.tensor([3, 4], dtype=torch.int32)
    loc = torch.zeros(2, 1, dtype=torch.int64)
    positions = upcoming(torch.tensor([1, 0]), lens, pages, 4, None, loc)
    assert loc.tolist() == [[9 * 4 + 0], [5 * 4 + 3]]
    assert positions.tolist() == [[4], [3]]


def test_a_node_has_the_next_slot_and_the_position_of_its_depth() -> None:
    pages, lens = torch.tensor([[5, 7]], dtype=torch.int32), torch.tensor([2], dtype=torch.int32)
    loc = torch.zeros(1, 4, dtype=torch.int64)
    depths = torch.tensor([[0, 1, 1, 2]], dtype=torch.int32)
    positions = upcoming(torch.tensor([0]), lens, pages, 4, depths, loc)
    assert loc.tolist() == [[22, 23, 28, 29]]
    assert positions.tolist() == [[2, 3, 3, 4]]


@pytest.mark.parametrize(("batch", "width", "page_size"), [(1, 1, 64), (7, 1, 1), (5, 6, 16), (3, 64, 16), (2, 17, 3)])
@pytest.mark.parametrize("trees", [False, True])
def test_the_kernel_equals_the_reference(
    interpreted: None, batch: int, width: int, page_size: int, trees: bool
) -> None:
    comparisons.upcomings(batch, width, page_size, trees, "cpu")
