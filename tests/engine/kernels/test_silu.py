"""The gate of the MLP."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from engine.kernels.silu import silu_mul, silu_mul_reference
from tests.engine.kernels import comparisons


def test_the_reference_is_torchs_own() -> None:
    gate, up = torch.randn(2, 3, 8, dtype=torch.float64)
    torch.testing.assert_close(silu_mul_reference(torch.cat([gate, up], dim=1), 8), F.silu(gate) * up)


def test_gates_and_ups_in_turn() -> None:
    gate, up = torch.randn(2, 3, 8, dtype=torch.float64)
    columns = [part[:, at : at + 2] for at in range(0, 8, 2) for part in (gate, up)]
    torch.testing.assert_close(silu_mul_reference(torch.cat(columns, dim=1), 2), F.silu(gate) * up)


@pytest.mark.parametrize("dtype", comparisons.DTYPES)
@pytest.mark.parametrize(
    ("n", "inner", "together"),
    [(1, 14336, 64), (3, 1536, 64), (2, 100, 100), (2, 100, 25), (4, 1, 1), (2, 2049, 2049), (65, 2100, 2100)],
)
def test_the_kernel_equals_the_reference(
    interpreted: None, n: int, inner: int, together: int, dtype: torch.dtype
) -> None:
    comparisons.silu_muls(n, inner, together, dtype, "cpu")


def test_rows_may_lie_apart(interpreted: None) -> None:
    wide = comparisons.made(3, 40, dtype=torch.float32)
    torch.testing.assert_close(silu_mul(wide[:, 4:36], 8), silu_mul_reference(wide[:, 4:36], 8))


@pytest.mark.parametrize("together", [16, 0, -2])
def test_columns_that_are_no_whole_blocks(together: int) -> None:
    with pytest.raises(ValueError, match=f"40 columns are not {together} gates, {together} ups, and so on in turn"):
        silu_mul(torch.zeros(1, 40), together)
