"""The gate and up products of the MLP, with the gate in them."""

from __future__ import annotations

import pytest
import torch

from engine.kernels import gated_product as module
from engine.kernels.gated_product import gated_product, gated_product_reference
from tests.engine.kernels import comparisons

HALF = torch.float16
"""What the interpreter can multiply; tests/gpu compares bfloat16."""


@pytest.mark.parametrize(("n", "hidden", "inner"), [(1, 64, 128), (130, 192, 256), (1100, 64, 256), (600, 128, 128)])
def test_the_kernel_equals_the_reference(interpreted: None, n: int, hidden: int, inner: int) -> None:
    """Rows that do not fill a tile; more tiles than programs; groups that are not full."""
    comparisons.gated_products(n, hidden, inner, HALF, "cpu", in_one=True)


def test_rows_may_lie_apart(interpreted: None) -> None:
    wide, gate_up = comparisons.made(5, 200, dtype=HALF), comparisons.made(256, 64, dtype=HALF, seed=1) * 0.1
    out = gated_product(wide[:, 8:72], gate_up, in_one=True)
    torch.testing.assert_close(out, gated_product_reference(wide[:, 8:72], gate_up), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(("n", "one"), [(512, False), (1023, False), (1024, True), (1025, False), (8000, True)])
def test_how_many_rows_take_the_one_launch(
    interpreted: None, monkeypatch: pytest.MonkeyPatch, n: int, one: bool
) -> None:
    """Few never do, and more do not where the last tiles would be too few for the multiprocessors, here four."""
    monkeypatch.setattr(module, "FEWEST_ROWS", 1024)
    launched: list[int] = []
    monkeypatch.setattr(module, "_gated_product_triton", lambda x, gate_up: launched.append(x.shape[0]))
    monkeypatch.setattr(module, "silu_mul", lambda gate_up, together: None)
    gated_product(torch.zeros(n, 64, dtype=HALF), torch.zeros(256, 64, dtype=HALF))
    assert launched == [n] * one


@pytest.mark.parametrize(
    ("dtype", "hidden", "inner"), [(torch.float32, 64, 128), (HALF, 72, 128), (HALF, 64, 192), (HALF, 64, 100)]
)
def test_what_it_does_not_take_goes_the_other_way(
    interpreted: None, dtype: torch.dtype, hidden: int, inner: int
) -> None:
    """As many rows as pay where the sizes fit."""
    comparisons.gated_products(1024, hidden, inner, dtype, "cpu")
    with pytest.raises(ValueError, match=r"no launch of its own for \[1024, .* it takes rows of 16-bit numbers"):
        comparisons.gated_products(1024, hidden, inner, dtype, "cpu", in_one=True)


def test_weights_that_lie_apart_go_the_other_way(interpreted: None) -> None:
    x, wide = torch.zeros(1024, 64, dtype=HALF), torch.zeros(256, 128, dtype=HALF)
    gated_product(x, wide[:, :64].contiguous(), in_one=True)
    with pytest.raises(ValueError, match="no launch of its own"):
        gated_product(x, wide[:, :64], in_one=True)


def test_another_gpu_goes_the_other_way(interpreted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_hopper", lambda device: False)
    comparisons.gated_products(1024, 64, 128, HALF, "cpu")
    with pytest.raises(ValueError, match="no launch of its own"):
        comparisons.gated_products(1024, 64, 128, HALF, "cpu", in_one=True)


@pytest.mark.parametrize("at", [1, 3])
def test_memory_that_begins_anywhere(interpreted: None, at: int) -> None:
    """A descriptor has to begin at 16 bytes: x is moved, weights go the other way."""
    line, gate_up = comparisons.made(64 * 4 + 8, dtype=HALF), comparisons.made(256 * 64 + 8, dtype=HALF, seed=1) * 0.1
    x, weights = line[at : at + 256].view(4, 64), gate_up[: 256 * 64].view(256, 64)
    out = gated_product(x, weights, in_one=True)
    torch.testing.assert_close(out, gated_product_reference(x, weights), rtol=1e-2, atol=1e-2)
    with pytest.raises(ValueError, match="no launch of its own"):
        gated_product(x, gate_up[at : at + 256 * 64].view(256, 64), in_one=True)


def test_other_widths_or_dtypes_are_no_product(interpreted: None) -> None:
    """As torch says; the kernel would pad the one, or fail within."""
    x = torch.zeros(1024, 64, dtype=HALF)
    for weights in (torch.zeros(256, 128, dtype=HALF), torch.zeros(256, 64, dtype=torch.bfloat16)):
        with pytest.raises(RuntimeError):
            gated_product(x, weights)


def test_no_rows() -> None:
    assert gated_product(torch.zeros(0, 64), torch.zeros(256, 64)).shape == (0, 128)
