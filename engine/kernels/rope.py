"""Rotary position embedding (RoFormer, arXiv 2104.09864) of a fused qkv product, with K and V written to the pool.

Heads keep the half-split order of Hugging Face checkpoints ("NeoX"): element i of a head turns with element i + D/2.
"""

from __future__ import annotations

from typing import Any

import torch

from engine.kernels.dispatch import check_contiguous, jit, next_power_of_2, tl, use_triton
from engine.models.rotary import rotation_table

FEW_ROWS = 64
"""Up to here a row is spread over more programs. Beyond, the GPU has enough of them, and starting them takes time."""


def _pairs(rows: int) -> int:
    """Pairs a program turns, eight a thread: a row of 32 + 2 × 8 heads of 128 is six programs, with many rows three."""
    return 512 if rows <= FEW_ROWS else 1024


def rope_table(
    head_dim: int,
    positions: int,
    theta: float,
    scaling: dict[str, Any] | None,
    device: torch.device | str,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """cos and sin of every position, [positions, head_dim]: the cosines in the first half of a row, the sines behind.

    Computed in float64 and rounded once. `dtype` other than float32 is for engines that compute in float64.

    Raises:
        engine.models.rotary.RopeError: a scaling other than linear and llama3.
    """
    turns = rotation_table(head_dim, positions, theta, scaling, torch.float64)  # complex [positions, head_dim / 2]
    return torch.cat([turns.real, turns.imag], dim=1).to(device=device, dtype=dtype)


def rope_and_write(
    qkv: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    loc: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    heads: int,
) -> torch.Tensor:
    """Turn q and k by their positions; write k and v to their slots; return q [N, H, D] in qkv's dtype.

    qkv [N, (H + 2 Hkv) D], rows may lie apart; table as of `rope_table`; positions, loc int64 [N];
    k_pool, v_pool [slots, Hkv, D], a slot contiguous. Rows that share a slot (padding) leave any one of theirs there.
    With 0 heads there is no q in qkv, and [N, 0, D] comes back.
    """
    check_contiguous(table=table, positions=positions, loc=loc)
    rope = _rope_and_write_triton if use_triton(qkv) else rope_and_write_reference
    return rope(qkv, table, positions, loc, k_pool, v_pool, heads)


def rope_and_write_reference(
    qkv: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    loc: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    heads: int,
) -> torch.Tensor:
    """`rope_and_write` in torch; float64 stays float64."""
    n = qkv.shape[0]
    kv_heads, head_dim = k_pool.shape[1:]
    split = qkv.view(n, heads + 2 * kv_heads, head_dim)
    wide = torch.promote_types(qkv.dtype, torch.float32)
    cos, sin = table[positions].to(wide)[:, None].chunk(2, dim=-1)  # [N, 1, D / 2] each
    first, second = split[:, : heads + kv_heads].to(wide).chunk(2, dim=-1)  # [N, H + Hkv, D / 2] each
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(qkv.dtype)
    k_pool[loc] = turned[:, heads:].to(k_pool.dtype)
    v_pool[loc] = split[:, heads + kv_heads :].to(v_pool.dtype)
    return turned[:, :heads].contiguous()


def _rope_and_write_triton(
    qkv: torch.Tensor,
    table: torch.Tensor,
    positions: torch.Tensor,
    loc: torch.Tensor,
    k_pool: torch.Tensor,
    v_pool: torch.Tensor,
    heads: int,
) -> torch.Tensor:
    n = qkv.shape[0]
    kv_heads, head_dim = k_pool.shape[1:]
    half = head_dim // 2
    half_block = next_power_of_2(half)
    total = heads + 2 * kv_heads
    head_block = min(max(_pairs(n) // half_block, 1), next_power_of_2(total))
    q = torch.empty((n, heads, head_dim), dtype=qkv.dtype, device=qkv.device)
    _rope_and_write_kernel[(n, -(-total // head_block))](
        qkv,
        table,
        positions,
        loc,
        q,
        k_pool,
        v_pool,
        qkv.stride(0),
        k_pool.stride(0),
        v_pool.stride(0),
        heads=heads,
        kv_heads=kv_heads,
        half=half,
        head_block=head_block,
        half_block=half_block,
        num_warps=min(max(head_block * half_block // 256, 1), 4),
    )
    return q


@jit(do_not_specialize_on_alignment=["positions_ptr", "loc_ptr"])
def _rope_and_write_kernel(
    qkv_ptr: tl.tensor,
    table_ptr: tl.tensor,
    positions_ptr: tl.tensor,
    loc_ptr: tl.tensor,
    q_ptr: tl.tensor,
    k_ptr: tl.tensor,
    v_ptr: tl.tensor,
    qkv_stride: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    heads: tl.constexpr,
    kv_heads: tl.constexpr,
    half: tl.constexpr,
    head_block: tl.constexpr,
    half_block: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    position = tl.load(positions_ptr + row)
    slot = tl.load(loc_ptr + row)
    head = (tl.program_id(1) * head_block + tl.arange(0, head_block))[:, None]  # [head_block, 1]
    # As wide as the heads are many, so that cosines are loaded in the layout of what they turn: no trip through shared
    # memory, and only the first head's load goes further than the L1 cache.
    pair = tl.arange(0, half_block)[None, :] + tl.zeros([head_block, 1], tl.int32)  # [head_block, half_block]
    inside = (head < heads + 2 * kv_heads) & (pair < half)
    at = qkv_ptr + row * qkv_stride + head * (2 * half) + pair
    first = tl.load(at, mask=inside, other=0.0)
    second = tl.load(at + half, mask=inside, other=0.0)
    turn = table_ptr + position * (2 * half) + pair
    cos = tl.load(turn, mask=pair < half, other=0.0).to(tl.float32)
    sin = tl.load(turn + half, mask=pair < half, other=0.0).to(tl.float32)
    x, y = first.to(tl.float32), second.to(tl.float32)
    turned_first = (x * cos - y * sin).to(q_ptr.dtype.element_ty)
    turned_second = (y * cos + x * sin).to(q_ptr.dtype.element_ty)

    to_q = q_ptr + row * (heads * 2 * half) + head * (2 * half) + pair
    is_q = inside & (head < heads)
    tl.store(to_q, turned_first, mask=is_q)
    tl.store(to_q + half, turned_second, mask=is_q)

    to_k = k_ptr + slot * k_stride + (head - heads) * (2 * half) + pair
    is_k = inside & (head >= heads) & (head < heads + kv_heads)
    tl.store(to_k, turned_first.to(k_ptr.dtype.element_ty), mask=is_k)
    tl.store(to_k + half, turned_second.to(k_ptr.dtype.element_ty), mask=is_k)

    to_v = v_ptr + slot * v_stride + (head - heads - kv_heads) * (2 * half) + pair
    is_v = inside & (head >= heads + kv_heads)
    tl.store(to_v, first.to(v_ptr.dtype.element_ty), mask=is_v)
    tl.store(to_v + half, second.to(v_ptr.dtype.element_ty), mask=is_v)
