"""Layouts of the attention kernels' programs beside the one in use, at the largest load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from itertools import product
from typing import Any

import torch

from engine.gpu_check.device_timer import median_us
from engine.gpu_check.floor import shape_of
from engine.gpu_check.floor_attention import PAGE, FloorBatch, verify_batch
from engine.gpu_check.session import Session, Skip, device_is_sound, free_memory
from engine.gpu_check.sizes import torch_dtype
from engine.kernels.attention_tiles import PROGRAMS_PER_SM, Tile, fitting, verify_tile
from engine.kernels.card import multiprocessors
from engine.kernels.extend_attention import extend_attention
from engine.kernels.paged_attention import new_arrivals, paged_attention
from engine.models.shapes import LlamaShape

Call = Callable[[Tile | None], object]
"""The kernel with a tile; None is what it takes by itself."""


def run(session: Session) -> None:
    """Cells ``tiles/verify CLIENTSxWIDTH`` and ``tiles/extend CLIENTS``: "rows/keys/warps/stages/registers" -> µs."""
    sizes = session.sizes
    most = sizes.clients[-1]
    for width in sizes.floor_widths:
        session.cell(f"tiles/verify {most}x{width}", partial(_verify, session, most, width), 120.0)
    prompts = max(1, min(most, sizes.prefill_chunk // sizes.prompt))
    session.cell(f"tiles/extend {prompts}", partial(_extend, session, prompts), 60.0)
    free_memory(session.device)


def verify_tiles(in_use: Tile) -> list[Tile]:
    """What could be taken for a decode or verify of so many rows."""
    return [Tile(in_use.rows, *parts) for parts in product((32, 64), (2, 4, 8), (2, 3, 4), (None, 128))]


def extend_tiles() -> list[Tile]:
    """What could be taken for prompts."""
    return [Tile(*parts) for parts in product((64, 128), (32, 64), (4, 8), (2, 3))]


def words(tile: Tile) -> str:
    """``16/32/4/4/128``; a dash for no limit of registers."""
    return "/".join(str(part) for part in (tile.rows, tile.keys, tile.warps, tile.stages, tile.registers or "-"))


def _verify(session: Session, requests: int, width: int) -> dict[str, Any]:
    shape, dtype, device = _on_gpu(session)
    length = session.sizes.prompt + session.sizes.output // 2
    batch = FloorBatch(shape, requests, width, length, dtype, session.device)
    described = verify_batch(batch)
    call = partial(
        paged_attention,
        batch.queries(),
        batch.pool(),
        batch.pool(),
        **{field.name: getattr(described, field.name) for field in fields(described)},
        arrivals=new_arrivals(device),
    )
    queries = width * (shape.num_heads // shape.num_kv_heads)
    few = requests * shape.num_kv_heads <= PROGRAMS_PER_SM * multiprocessors(device)
    in_use = verify_tile(queries, width, shape.head_dim, dtype, few=few)
    return _timed(lambda tile: call(tile=tile), _fits(verify_tiles(in_use), shape, dtype, device, width))


def _extend(session: Session, prompts: int) -> dict[str, Any]:
    shape, dtype, device = _on_gpu(session)
    length = session.sizes.prompt
    batch = FloorBatch(shape, prompts, length, length, dtype, session.device)
    table = torch.arange(prompts * batch.pages_each, dtype=torch.int32, device=device).view(prompts, -1)
    call = partial(
        extend_attention,
        batch.queries(),
        batch.pool(),
        batch.pool(),
        rows=torch.arange(prompts, device=device),
        starts=torch.zeros(prompts, dtype=torch.int32, device=device),
        cu_q=torch.arange(prompts + 1, dtype=torch.int32, device=device) * length,
        max_q=length,
        pages=table,
        page_size=PAGE,
        host_lengths=[length] * prompts,
        host_q=[length] * prompts,
    )
    return _timed(lambda tile: call(tile=tile), _fits(extend_tiles(), shape, dtype, device, 0))


def _on_gpu(session: Session) -> tuple[LlamaShape, torch.dtype, torch.device]:
    if session.device != "cuda":
        raise Skip("needs a GPU")
    return shape_of(session.sizes.model), torch_dtype(session.sizes.dtype), session.torch_device


def _fits(tiles: Sequence[Tile], shape: LlamaShape, dtype: torch.dtype, device: torch.device, tail: int) -> list[Tile]:
    """Those that shared memory has room for as they are."""
    return [tile for tile in tiles if fitting(tile, shape.head_dim, dtype.itemsize, device, tail) == tile]


def _timed(call: Call, tiles: Sequence[Tile]) -> dict[str, Any]:
    found: dict[str, Any] = {"in use": _us(call, None)}
    for tile in tiles:
        try:
            found[words(tile)] = _us(call, tile)
        except Exception as error:  # too many registers for so many warps, say: another tile may do
            if not device_is_sound("cuda"):
                raise
            found[words(tile)] = type(error).__name__
    return found


def _us(call: Call, tile: Tile | None) -> float:
    return round(median_us(lambda: call(tile), "cuda"), 2)
