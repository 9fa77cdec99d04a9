"""Products with fixed weights against the plain one, in every arithmetic."""

from __future__ import annotations

import pytest
import torch

from engine.config import Dtype
from engine.models.linear import Linear, choose_arithmetic

TOLERANCE: dict[Dtype, float] = {"float64": 1e-12, "float32": 1e-4, "bfloat16": 0.25, "float16": 0.05}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rows", [1, 3, 16, 48])
def test_products_equal_the_plain_one(dtype: Dtype, rows: int) -> None:
    """Alone, and added to what comes beside; neither changes what it was given."""
    arithmetic = choose_arithmetic(dtype)
    generator = torch.Generator().manual_seed(rows)
    weight = torch.randn(96, 64, generator=generator, dtype=torch.float64)
    x = torch.randn(rows, 64, generator=generator, dtype=torch.float64).to(arithmetic.activations)
    other = torch.randn(rows, 96, generator=generator, dtype=torch.float64).to(arithmetic.activations)
    kept = other.clone()
    product = Linear(weight, arithmetic)
    alone, added = product(x), product.plus(x, other)
    wanted = x.double() @ weight.T
    assert alone.dtype == added.dtype == arithmetic.activations
    torch.testing.assert_close(alone.double(), wanted, rtol=0, atol=TOLERANCE[dtype])
    torch.testing.assert_close(added.double(), wanted + kept.double(), rtol=0, atol=TOLERANCE[dtype])
    assert torch.equal(other, kept)
