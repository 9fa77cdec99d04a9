"""The state after a step."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.advance import advance
from tests.engine.kernels import comparisons


def test_the_newest_token_is_the_last_kept_and_pad_rows_stay() -> None:
    tokens, lens = torch.tensor([10, 11, 12, 13]), torch.tensor([1, 2, 3, 4], dtype=torch.int32)
    kept = torch.tensor([2, 1, 3, 1], dtype=torch.int32)
    emitted = torch.tensor([[7, 8, -1], [5, -1, -1], [1, 2, 3], [9, -1, -1]])
    advance(torch.tensor([2, 3, 0, 3]), kept, emitted, tokens, lens, pad_row=3)
    assert tokens.tolist() == [3, 11, 8, 13]
    assert lens.tolist() == [4, 2, 5, 4]


@pytest.mark.parametrize(("batch", "emitted"), [(1, 1), (4, 3), (130, 5), (250, 17)])
def test_the_kernel_equals_the_reference(interpreted: None, batch: int, emitted: int) -> None:
    comparisons.advances(batch, emitted, "cpu")
