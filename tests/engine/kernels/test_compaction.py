"""Kept K and V move to the front."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.compaction import compact
from tests.engine.kernels import comparisons


def test_the_kept_path_comes_first_and_the_rest_stays() -> None:
    k_pool, v_pool = torch.arange(12.0).view(2, 1, 6, 1, 1)
    path, kept = torch.tensor([[0, 2, 3]], dtype=torch.int32), torch.tensor([3], dtype=torch.int32)
    compact(k_pool, v_pool, path, kept, torch.tensor([[5, 4, 3, 2]]))
    assert k_pool.flatten().tolist() == [0, 1, 2, 2, 3, 5]
    assert v_pool.flatten().tolist() == [6, 7, 8, 8, 9, 11]


def test_what_a_walk_did_not_keep_is_not_moved() -> None:
    k_pool, v_pool = torch.arange(12.0).view(2, 1, 6, 1, 1)
    before = k_pool.clone()
    path, kept = torch.tensor([[0, 2, 3]], dtype=torch.int32), torch.tensor([1], dtype=torch.int32)
    compact(k_pool, v_pool, path, kept, torch.tensor([[5, 4, 3, 2]]))
    assert torch.equal(k_pool, before)


@pytest.mark.parametrize("dtype", comparisons.DTYPES)
@pytest.mark.parametrize(
    ("batch", "width", "most", "layers", "kv_heads", "head_dim"),
    [(3, 16, 5, 2, 3, 64), (1, 2, 2, 1, 8, 128), (2, 64, 17, 1, 1, 16), (2, 4, 1, 1, 1, 16), (1, 8, 4, 1, 9, 256)],
)
def test_the_kernel_equals_the_reference(
    interpreted: None,
    batch: int,
    width: int,
    most: int,
    layers: int,
    kv_heads: int,
    head_dim: int,
    dtype: torch.dtype,
) -> None:
    comparisons.compactions(batch, width, most, layers, kv_heads, head_dim, dtype, "cpu")
