"""Rotation of q and k, and K and V in their slots."""

from __future__ import annotations

import math

import pytest
import torch

from engine.kernels.rope import rope_and_write, rope_and_write_reference, rope_table
from engine.models.rotary import RopeError, interleave_rows, rotate, rotation_table
from tests.engine.kernels import comparisons

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def test_the_table_is_cosines_then_sines() -> None:
    table = rope_table(4, 8, 100.0, None, "cpu")
    assert table.dtype == torch.float32
    expected = [math.cos(3.0), math.cos(0.3), math.sin(3.0), math.sin(0.3)]
    torch.testing.assert_close(table[3], torch.tensor(expected))


def test_an_unknown_scaling_is_refused() -> None:
    with pytest.raises(RopeError):
        rope_table(4, 8, 1e4, {"rope_type": "yarn"}, "cpu")


@pytest.mark.parametrize("scaling", [None, {"type": "linear", "factor": 4.0}, LLAMA3])
def test_the_reference_turns_as_the_host_worker_does(scaling: dict[str, float] | None) -> None:
    n, heads, kv_heads, dim = 3, 4, 2, 16
    qkv = torch.randn(n, (heads + 2 * kv_heads) * dim, dtype=torch.float64)
    positions, loc = torch.tensor([5, 0, 63]), torch.tensor([2, 4, 1])
    k_pool, v_pool = torch.zeros(2, 5, kv_heads, dim, dtype=torch.float64)
    table = rope_table(dim, 64, 1e4, scaling, "cpu", torch.float64)
    q = rope_and_write_reference(qkv, table, positions, loc, k_pool, v_pool, heads)
    # The host worker keeps the two of a pair side by side: the columns in another order, the numbers the same.
    order = interleave_rows(torch.arange((heads + kv_heads) * dim, dtype=torch.float64)[:, None], dim)[:, 0].long()
    sided = qkv[:, order].view(n, heads + kv_heads, dim).clone()
    rotate(sided, rotation_table(dim, 64, 1e4, scaling, torch.float64)[positions][:, None])
    turned = torch.cat([q, k_pool[loc]], dim=1).view(n, -1)[:, order].view_as(sided)
    torch.testing.assert_close(turned, sided)
    assert torch.equal(v_pool[loc].view(n, -1), qkv[:, (heads + kv_heads) * dim :])


@pytest.mark.parametrize("dtype", comparisons.DTYPES)
@pytest.mark.parametrize(
    ("n", "heads", "kv_heads", "head_dim"),
    [
        (1, 32, 8, 128),
        (3, 9, 3, 64),
        (2, 4, 2, 80),
        (5, 1, 1, 2),
        (2, 40, 1, 16),
        (1, 2, 2, 256),
        (2, 0, 2, 64),
        (65, 5, 1, 128),
    ],
)
def test_the_kernel_equals_the_reference(
    interpreted: None, n: int, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    comparisons.ropes(n, heads, kv_heads, head_dim, dtype, "cpu")


def test_values_are_copied_whatever_they_are(interpreted: None) -> None:
    """An infinite v stays one, where a rotation by zero would make it NaN."""
    qkv = torch.full((1, 12), float("inf"))
    k_pool, v_pool = torch.zeros(2, 1, 1, 4)
    zero = torch.zeros(1, dtype=torch.int64)
    rope_and_write(qkv, rope_table(4, 1, 1e4, None, "cpu"), zero, zero, k_pool, v_pool, 1)
    assert v_pool.isinf().all()


def test_positions_that_are_a_view_of_one_number_are_refused() -> None:
    """`expand` and then `reshape` copies for two requests and not for one: a kernel would read past its end."""
    qkv, table = torch.randn(4, 6 * 8), rope_table(8, 16, 10000.0, None, "cpu")
    pool = torch.zeros(8, 2, 8)
    positions = torch.tensor([3])[:, None].expand(-1, 4).reshape(-1)
    with pytest.raises(ValueError, match=r"positions must be contiguous, it has shape \[4\], strides \(0,\)"):
        rope_and_write(qkv, table, positions, torch.arange(4), pool, pool.clone(), heads=2)
