"""Hidden states that wait for the draft."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.ring import push
from tests.engine.kernels import comparisons


def test_a_row_goes_to_the_next_place_and_a_full_ring_stays_full() -> None:
    aux_ring, ring_ids = torch.zeros(3, 2, 2), torch.zeros(3, 2, dtype=torch.int64)
    ring_len = torch.tensor([0, 1, 2], dtype=torch.int32)
    aux = torch.tensor([[1.0, 1.0], [2.0, 2.0]])
    push(torch.tensor([1, 2]), aux, torch.tensor([7, 8]), aux_ring, ring_ids, ring_len)
    assert ring_len.tolist() == [0, 2, 2]
    assert ring_ids.tolist() == [[0, 0], [0, 7], [0, 8]]
    assert aux_ring[:, :, 0].tolist() == [[0, 0], [0, 1], [0, 2]]


@pytest.mark.parametrize(("batch", "width"), [(1, 5), (6, 64), (3, 4097), (2, 12288)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_kernel_equals_the_reference(interpreted: None, batch: int, width: int, dtype: torch.dtype) -> None:
    comparisons.pushes(batch, width, dtype, "cpu")
