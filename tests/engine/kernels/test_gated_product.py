"""The gate and up products of the MLP, with the gate in them."""

from __future__ import annotations

import pytest
import torch

from engine.kernels import gated_product as module
from engine.kernels.gated_product import gated_product, gated_product_reference
from tests.engine.kernels import comparisons


@pytest.mark.parametrize(("n", "hidden", "inner"), [(1, 64, 128), (130, 72, 192), (1100, 64, 256), (600, 200, 64)])
def test_the_kernel_equals_the_reference(
    interpreted: None, monkeypatch: pytest.MonkeyPatch, n: int, hidden: int, inner: int
) -> None:
    """Rows, and an inner dimension, that do not fill a tile; more tiles than programs; groups that are not full. The
    interpreter has no products of bfloat16: tests/gpu compares those."""
    monkeypatch.setattr(module, "FEWEST_ROWS", 1)
    monkeypatch.setattr(module, "LEAST_FILLED", 0.0)
    monkeypatch.setattr(module, "silu_mul", None)  # the other way round would fail
    comparisons.gated_products(n, hidden, inner, torch.float16, "cpu")


@pytest.mark.parametrize(("n", "one"), [(512, False), (1023, False), (1024, True), (1025, False), (8000, True)])
def test_how_many_rows_take_the_one_launch(
    interpreted: None, monkeypatch: pytest.MonkeyPatch, n: int, one: bool
) -> None:
    """Few never do, and more do not where the last tiles would be too few for the multiprocessors, here four."""
    monkeypatch.setattr(module, "FEWEST_ROWS", 1024)
    x, gate_up = (torch.zeros(rows, 64, dtype=torch.float16) for rows in (n, 256))
    assert module._serves(x, gate_up) == one


@pytest.mark.parametrize(
    ("dtype", "hidden", "inner"), [(torch.float32, 64, 128), (torch.float16, 60, 128), (torch.float16, 64, 100)]
)
def test_what_it_does_not_take_goes_the_other_way(
    interpreted: None, dtype: torch.dtype, hidden: int, inner: int
) -> None:
    x, gate_up = comparisons.made(896, hidden, dtype=dtype), comparisons.made(2 * inner, hidden, dtype=dtype, seed=1)
    assert not module._serves(x, gate_up)
    comparisons.assert_close(gated_product(x, gate_up), gated_product_reference(x, gate_up))
