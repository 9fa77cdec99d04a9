"""Pieces of the target's forward against torch's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.models.linear import choose_arithmetic
from engine.models.llama import NormedLinear
from engine.models.rotary import interleave_rows, rotate, rotation_table


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 2.6e4])
def test_the_norm_equals_torchs_own_also_where_eps_matters_and_where_activations_are_huge(
    dtype: str, scale: float
) -> None:
    arithmetic = choose_arithmetic(dtype)  # type: ignore[arg-type]
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(5, 576, generator=generator, dtype=torch.float64) * scale).to(arithmetic.activations)
    weight = torch.randn(576, generator=generator, dtype=torch.float64)
    wanted = F.rms_norm(x.double(), (576,), weight.to(arithmetic.activations).double(), 1e-5)
    got = NormedLinear(weight, torch.eye(576, dtype=torch.float64), 1e-5, arithmetic)(x)
    assert got.dtype == arithmetic.activations
    tolerance = {"float64": 1e-12, "float32": 1e-5, "bfloat16": 2e-2}[dtype]
    torch.testing.assert_close(got.double(), wanted, rtol=tolerance, atol=tolerance)


def test_rotation_equals_the_half_split_formula() -> None:
    """The order of a head's rows changes, the dot products of rotated queries and keys do not."""
    generator = torch.Generator().manual_seed(2)
    q_weight, k_weight = torch.randn(2, 32, 24, generator=generator, dtype=torch.float64).unbind()
    x = torch.randn(7, 24, generator=generator, dtype=torch.float64)
    table = rotation_table(16, 64, 10000.0, None, torch.float64)
    positions = torch.tensor([0, 1, 5, 9, 20, 40, 63])
    angles = positions[:, None] * 10000.0 ** -(torch.arange(0, 16, 2, dtype=torch.float64) / 16)

    def half_split(weight: torch.Tensor) -> torch.Tensor:
        heads = (x @ weight.T).view(7, 2, 16)
        first, second = heads.chunk(2, dim=-1)
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)

    def interleaved(weight: torch.Tensor) -> torch.Tensor:
        heads = (x @ interleave_rows(weight, 16).T).view(7, 2, 16)
        rotate(heads, table[positions][:, None])
        return heads

    wanted = torch.einsum("ihd,jhd->hij", half_split(q_weight), half_split(k_weight))
    got = torch.einsum("ihd,jhd->hij", interleaved(q_weight), interleaved(k_weight))
    torch.testing.assert_close(got, wanted, rtol=1e-12, atol=1e-12)
