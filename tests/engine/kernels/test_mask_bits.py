"""Tree masks as dense bits."""

from __future__ import annotations

import random

import pytest
import torch

from engine.kernels.mask_bits import pack_masks
from tests.engine.attention.cases import signed, tree_masks

LENGTHS = [9, 64, 301, 7]


@pytest.mark.parametrize("implementation", ["reference", "kernel"])
@pytest.mark.parametrize("width", [1, 3, 7])
def test_every_query_sees_the_prefix_and_of_the_new_tokens_what_its_mask_says(
    request: pytest.FixtureRequest, implementation: str, width: int
) -> None:
    if implementation == "kernel":
        request.getfixturevalue("interpreted")
    masks = [tree_masks(width, random.Random(seed)) for seed in range(len(LENGTHS))]
    wanted, starts = [], [0]
    for length, mine in zip(LENGTHS, masks, strict=True):
        prefix = length - width
        bits = [n < prefix or bool(mask >> (n - prefix) & 1) for mask in mine for n in range(length)]
        wanted += [sum(bit << place for place, bit in enumerate(bits[at : at + 8])) for at in range(0, len(bits), 8)]
        starts.append(len(wanted))
    out = torch.full((starts[-1] + 1,), 7, dtype=torch.uint8)
    lengths, offsets = (torch.tensor(values, dtype=torch.int32) for values in (LENGTHS, starts))
    pack_masks(torch.tensor(masks), lengths, offsets, max(LENGTHS) * width, out)
    assert out.tolist() == [*wanted, 7]


def test_the_last_of_64_bits(interpreted: None) -> None:
    mask = torch.tensor([[signed(1 << 63)] * 64])
    out = torch.zeros(512, dtype=torch.uint8)
    pack_masks(mask, torch.tensor([64]).int(), torch.tensor([0, 512]).int(), 512, out)
    assert out.view(64, 8).tolist() == [[0] * 7 + [128]] * 64
