"""Shapes of the attention kernels' programs, and how many there are.

Chosen by registers, spills and shared memory of what Triton 3.6 makes for sm_90, so that enough programs fit a
multiprocessor to keep its memory busy while some of them are at their first or last key: of a decode or a narrow verify
four, of a wide verify three. Rows of 32 are not used in 16 bits: they take more registers than 64, which a warpgroup's
products (wgmma) are made for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from engine.kernels.dispatch import next_power_of_2

PROGRAMS_PER_SM = 2
"""A batch with fewer programs has long prefixes split. This many fit with the larger of the tiles."""
LEAST_KEYS = 256
"""A part of a prefix is at least this long: merging costs about as much as reading these many keys."""
SHORT_CHUNK = 1024
"""Queries a key head up to which an extend's programs are small. On an H200 that is faster for prompts of 128 tokens in
groups of 4 heads; for prompts of 4,096 the larger ones are; a short chunk behind a long prefix was not measured."""
SHARED_BESIDE = 6144
"""Bytes of shared memory that a program may take beside its queries and keys."""


@dataclass(frozen=True)
class Tile:
    """How a program is laid out. ``rows`` and ``keys`` are powers of two, at least 16 (what tl.dot takes)."""

    rows: int
    """Queries x heads of a group that a program holds."""
    keys: int
    """Keys of one step of its loop."""
    warps: int
    stages: int
    """Tiles of keys on the way or in use, as Triton counts: stages - 1 buffers."""
    registers: int | None = None
    """The most a thread may have, so that one program more fits a multiprocessor. None: what the compiler takes."""


def servable(head_dim: int, dtype: torch.dtype) -> bool:
    """The kernels can serve this: a power of two from 16 to 256, in bfloat16, float16 or float32."""
    return dtype in (torch.bfloat16, torch.float16, torch.float32) and head_dim in (16, 32, 64, 128, 256)


def fitting(tile: Tile, dim: int, itemsize: int, device: torch.device, tail: int = 0) -> Tile:
    """Fewer keys on the way, then fewer keys a tile (if no fewer than the tail's), where shared memory is short."""
    if device.type != "cuda":
        return tile
    card = torch.cuda.get_device_properties(device)
    most: int = getattr(card, "shared_memory_per_block_optin", card.shared_memory_per_block)  # torch types the latter
    room = most - SHARED_BESIDE
    while _shared_bytes(tile, dim, itemsize) > room:
        if tile.stages > 2:
            tile = replace(tile, stages=tile.stages - 1)
        elif tile.keys > max(16, next_power_of_2(max(tail, 1))):
            tile = replace(tile, keys=tile.keys // 2)
        else:
            break
    return tile


def _shared_bytes(tile: Tile, dim: int, itemsize: int) -> int:
    """Of queries and keys. wgmma reads a tile of keys while the others are on the way; otherwise it is in registers."""
    buffers = tile.stages if tile.rows >= 64 else tile.stages - 1
    return (tile.rows + 2 * tile.keys * buffers) * dim * itemsize


def most_rows(dim: int, dtype: torch.dtype) -> int:
    """Rows of the largest tile: what one warpgroup's matrix instruction takes, or what float32 has registers for."""
    return 32 if dtype == torch.float32 and dim <= 64 else 16 if dtype == torch.float32 else 64


def verify_tile(queries: int, tail: int, dim: int, dtype: torch.dtype, *, few: bool) -> Tile:
    """For ``queries`` rows a key head, and tail keys, which have to fit one tile.

    ``few``: at most PROGRAMS_PER_SM of them run, so what counts is how long one takes, not how many fit.
    """
    rows = 16 if queries <= 16 else most_rows(dim, dtype)
    if dtype == torch.float32:  # on plain FMAs: Triton has no other exact product
        tile = Tile(rows, 32, 4, 2) if dim <= 64 else Tile(rows, 16, 8, 2)
    elif dim == 256:
        tile = Tile(rows, 32, 8, 3)
    elif few or tail > 32:
        tile = Tile(rows, 64, 4, 4 if rows == 16 else 3)
    else:
        tile = Tile(rows, 32, 4, 4, 128) if rows == 16 else Tile(rows, 32, 4, 3, 168)
    return replace(tile, keys=max(tile.keys, next_power_of_2(max(tail, 1))))


def split_count(programs: int, most_keys: int, sms: int) -> int:
    """Parts that a prefix of ``most_keys`` is cut into at most."""
    wanted = PROGRAMS_PER_SM * sms // programs
    return max(1, min(wanted, most_keys // LEAST_KEYS))


def extend_tile(queries: int, dim: int, dtype: torch.dtype) -> Tile:
    """For chunks of at most ``queries`` rows a key head."""
    if dtype == torch.float32:
        return verify_tile(queries, 0, dim, dtype, few=False)
    if queries <= 64:
        return Tile(64, 32 if dim == 256 else 64, 4, 3)
    if dim == 256:
        return Tile(128, 32, 8, 3)
    return Tile(128, 32, 4, 3) if queries <= SHORT_CHUNK else Tile(128, 64, 8, 3)


def chunks_of_every_tile(group: int) -> list[int]:
    """Lengths of chunks that between them take every tile of `extend_tile`. ``group``: heads that share a key head."""
    return sorted({1, *(queries // group + 1 for queries in (16, 64, SHORT_CHUNK))})
