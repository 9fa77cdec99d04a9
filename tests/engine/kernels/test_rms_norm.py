"""RMS norm, with and without the residual."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.config import Dtype
from engine.kernels.rms_norm import add_rms_norm, add_rms_norm_reference, rms_norm, rms_norm_reference
from engine.models.linear import choose_arithmetic
from engine.models.llama import RmsNorm
from tests.engine.kernels import comparisons

SIZES = [(1, 4096), (3, 576), (5, 64), (2, 1), (7, 100), (0, 64)]


def test_the_reference_is_torchs_own() -> None:
    x, weight = torch.randn(4, 48, dtype=torch.float64), torch.randn(48, dtype=torch.float64)
    torch.testing.assert_close(rms_norm_reference(x, weight, 1e-5), F.rms_norm(x, (48,), weight, 1e-5))


@pytest.mark.parametrize("name", ["float64", "float32", "bfloat16"])
def test_the_reference_is_the_host_workers(name: Dtype) -> None:
    dtype = getattr(torch, name)
    x, weight = comparisons.made(4, 48, dtype=dtype), comparisons.made(48, dtype=dtype, seed=1)
    host = RmsNorm(weight, 1e-5, choose_arithmetic(name))
    comparisons.assert_close(rms_norm_reference(x, weight, 1e-5), host(x))


@pytest.mark.parametrize("dtype", comparisons.DTYPES)
@pytest.mark.parametrize(("n", "hidden"), SIZES)
def test_the_kernel_equals_the_reference(interpreted: None, n: int, hidden: int, dtype: torch.dtype) -> None:
    comparisons.rms_norms(n, hidden, dtype, "cpu")


@pytest.mark.parametrize("dtype", comparisons.DTYPES)
@pytest.mark.parametrize(("n", "hidden"), SIZES)
def test_the_kernel_adds_in_place(interpreted: None, n: int, hidden: int, dtype: torch.dtype) -> None:
    comparisons.add_rms_norms(n, hidden, dtype, "cpu")


def test_float64_is_added_and_normed_in_float64() -> None:
    x, residual, weight = (torch.randn(*shape, dtype=torch.float64) for shape in [(2, 9), (2, 9), (9,)])
    expected = rms_norm(x + residual, weight, 1e-6)
    assert torch.equal(add_rms_norm(x, residual, weight, 1e-6), expected)


def test_the_norm_is_of_the_residual_as_it_was_rounded() -> None:
    x, residual = torch.tensor([[256.0, 1.0]]).bfloat16(), torch.tensor([[1.0, 0.0]]).bfloat16()
    out = add_rms_norm_reference(x, residual, torch.ones(2).bfloat16(), 0.0)
    assert residual.tolist() == [[256.0, 1.0]]  # 257 has no bfloat16
    assert torch.equal(out, rms_norm_reference(residual, torch.ones(2).bfloat16(), 0.0))
