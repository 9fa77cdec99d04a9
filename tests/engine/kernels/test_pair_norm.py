"""Embedding and hidden state, each normed, side by side."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.kernels.pair_norm import pair_norm, pair_norm_reference

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, float]


def inputs(dtype: torch.dtype, hidden: int = 48) -> Inputs:
    generator = torch.Generator().manual_seed(0)

    def random(*dims: int) -> torch.Tensor:
        return torch.randn(dims, generator=generator, dtype=torch.float64).to(dtype)

    wide = random(5, 2 * hidden)
    return torch.tensor([3, 0, 9, 3, 1]), random(10, hidden), random(hidden), wide[:, :hidden], random(hidden), 1e-5


def test_the_reference_is_torchs_own_norm_of_each() -> None:
    ids, embedding, embedding_weight, g, g_weight, eps = given = inputs(torch.float64)
    left = F.rms_norm(embedding[ids], (48,), embedding_weight, eps)
    right = F.rms_norm(g, (48,), g_weight, eps)
    torch.testing.assert_close(pair_norm_reference(*given), torch.cat([left, right], dim=1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_kernel_equals_the_reference(interpreted: None, dtype: torch.dtype) -> None:
    given = inputs(dtype)
    got = pair_norm(*given)
    assert got.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(got, pair_norm_reference(*given), rtol=tolerance, atol=tolerance)
