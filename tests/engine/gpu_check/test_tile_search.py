"""Which layouts are tried, and how they are named."""

from __future__ import annotations

import torch

from engine.gpu_check.tile_search import extend_tiles, verify_tiles, words
from engine.kernels.attention_tiles import Tile, extend_tile, verify_tile


def test_what_is_in_use_is_among_what_is_tried() -> None:

    for queries in (4, 16):
        in_use = verify_tile(queries, 4, 128, torch.bfloat16, few=False)
        assert in_use in verify_tiles(in_use)
    for queries in (64, 512, 2048):
        assert extend_tile(queries, 128, torch.bfloat16) in extend_tiles()


def test_names_tell_them_apart() -> None:
    assert words(Tile(16, 32, 4, 4, 128)) == "16/32/4/4/128"
    assert words(Tile(64, 64, 8, 3)) == "64/64/8/3/-"
    tiles = [*verify_tiles(Tile(16, 32, 4, 4)), *extend_tiles()]
    assert len({words(tile) for tile in tiles}) == len(set(tiles))
