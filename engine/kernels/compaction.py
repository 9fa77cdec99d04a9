"""Kept nodes' K and V move to the front of their request's slots, in all layers by one launch.

In place is safe: a path only climbs (path[i] >= i, and increasing), so what is read at i stands where nothing has been
written yet. For chains there is nothing to move: every kept node is in its place.
"""

from __future__ import annotations

import torch

from engine.kernels.dispatch import check_contiguous, jit, next_power_of_2, tl, use_triton

BLOCK = 2048
"""Elements of a slot's K (and of its V) that a program moves."""


def compact(
    k_pool: torch.Tensor, v_pool: torch.Tensor, path: torch.Tensor, kept: torch.Tensor, loc: torch.Tensor
) -> None:
    """K and V of slot loc[b, path[b, i]] go to slot loc[b, i], for i < kept[b], in every layer.

    k_pool, v_pool [L, slots, Hkv, D], a slot contiguous; path int32 [B, D + 1] and kept int32 [B] as of `walk`;
    loc int64 [B, W], no slot in two rows (padding apart).
    """
    check_contiguous(kept=kept)
    (_compact_triton if use_triton(k_pool) else compact_reference)(k_pool, v_pool, path, kept, loc)


def compact_reference(
    k_pool: torch.Tensor, v_pool: torch.Tensor, path: torch.Tensor, kept: torch.Tensor, loc: torch.Tensor
) -> None:
    """`compact` in torch: all that moves is read before any of it is written."""
    most = path.shape[1]
    target = loc[:, :most]
    moves = torch.arange(most, device=path.device) < kept[:, None]  # [B, D + 1]
    source = torch.where(moves, loc.gather(1, path.long()), target)
    k_pool[:, target.reshape(-1)] = k_pool[:, source.reshape(-1)]
    v_pool[:, target.reshape(-1)] = v_pool[:, source.reshape(-1)]


def _compact_triton(
    k_pool: torch.Tensor, v_pool: torch.Tensor, path: torch.Tensor, kept: torch.Tensor, loc: torch.Tensor
) -> None:
    layers, _, kv_heads, head_dim = k_pool.shape
    size = kv_heads * head_dim
    block = min(BLOCK, next_power_of_2(size))
    _compact_kernel[(path.shape[0], layers, -(-size // block))](
        k_pool,
        v_pool,
        path,
        kept,
        loc,
        k_pool.stride(0),
        k_pool.stride(1),
        v_pool.stride(0),
        v_pool.stride(1),
        path.stride(0),
        loc.stride(0),
        size=size,
        block=block,
        num_warps=min(max(block // 256, 1), 8),
    )


@jit(
    do_not_specialize=["path_stride", "loc_stride"],
    do_not_specialize_on_alignment=["path_ptr", "kept_ptr", "loc_ptr"],
)
def _compact_kernel(
    k_ptr: tl.tensor,
    v_ptr: tl.tensor,
    path_ptr: tl.tensor,
    kept_ptr: tl.tensor,
    loc_ptr: tl.tensor,
    k_layer: tl.tensor,
    k_slot: tl.tensor,
    v_layer: tl.tensor,
    v_slot: tl.tensor,
    path_stride: tl.tensor,
    loc_stride: tl.tensor,
    size: tl.constexpr,
    block: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    layer = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(2) * block + tl.arange(0, block)
    inside = cols < size
    kept = tl.load(kept_ptr + row)
    k = k_ptr + layer * k_layer + cols
    v = v_ptr + layer * v_layer + cols
    for i in range(1, kept):  # the root is in its place
        node = tl.load(path_ptr + row * path_stride + i)
        source = tl.load(loc_ptr + row * loc_stride + node)
        target = tl.load(loc_ptr + row * loc_stride + i)
        moves = inside & (node != i)
        key = tl.load(k + source * k_slot, mask=moves)
        value = tl.load(v + source * v_slot, mask=moves)
        tl.store(k + target * k_slot, key, mask=moves)
        tl.store(v + target * v_slot, value, mask=moves)
