"""Causal attention of prefill chunks over their requests' pages, ragged: FlashAttention over a paged pool.

K and V of the chunks' own tokens stand in the pool already, behind those of the prefix, so a query at position p sees
positions 0..p through the page table and nothing else. A program holds a run of tokens times the heads that share a key
head. Keys that all of its queries see need no mask; the diagonal comes last.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F

from engine.kernels.attention_tiles import Tile, extend_tile, fitting, servable
from engine.kernels.dispatch import check_contiguous, jit, tl, use_triton
from engine.kernels.online_softmax import LOG2_E, take_keys


def extend_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    rows: torch.Tensor,
    starts: torch.Tensor,
    cu_q: torch.Tensor,
    max_q: int,
    pages: torch.Tensor,
    page_size: int,
    host_lengths: Sequence[int],
    host_q: Sequence[int],
    tile: Tile | None = None,
) -> torch.Tensor:
    """q [N, H, D] of all chunks one behind the other, k and v [slots, Hkv, D] -> [N, H, D], scores scaled by D ** -0.5.

    Args:
        rows: int64 [B], rows of ``pages``.
        starts: int32 [B], tokens of each request before its chunk.
        cu_q: int32 [B + 1], where each chunk begins in q; the last entry is N.
        max_q: the longest chunk.
        pages: int32 [R, P], numbers; position p has slot pages[row, p // page_size] * page_size + p % page_size.
        host_lengths, host_q: start + chunk, and chunk, of each request: only the reference looks at them.
        tile: another layout of its programs than the one that attention_tiles.py gives, for measurements; its limit of
            registers is not looked at.
    """
    check_contiguous(rows=rows, starts=starts, cu_q=cu_q)
    if not use_triton(q) or not servable(q.shape[-1], q.dtype):
        return extend_attention_reference(
            q, k, v, rows=rows, pages=pages, page_size=page_size, host_lengths=host_lengths, host_q=host_q
        )
    (_, heads, dim), kv_heads = q.shape, k.shape[1]
    q, out = q.contiguous(), torch.empty(q.shape, dtype=q.dtype, device=q.device)
    queries = max_q * (heads // kv_heads)
    if tile is None:
        tile = fitting(extend_tile(queries, dim, q.dtype), dim, q.element_size(), q.device)
    _extend[(-(-queries // tile.rows), kv_heads, rows.shape[0])](
        q,
        k,
        v,
        out,
        rows,
        starts,
        cu_q,
        pages,
        dim**-0.5 * LOG2_E,
        pages.stride(0),
        k.stride(0),
        v.stride(0),
        heads=heads,
        kv_heads=kv_heads,
        dim=dim,
        page_size=page_size,
        m=tile.rows,
        n=tile.keys,
        num_warps=tile.warps,
        num_stages=tile.stages,
    )
    return out


@jit
def _extend(
    q_ptr: tl.tensor,
    k_ptr: tl.tensor,
    v_ptr: tl.tensor,
    out_ptr: tl.tensor,
    rows_ptr: tl.tensor,
    starts_ptr: tl.tensor,
    cu_q_ptr: tl.tensor,
    pages_ptr: tl.tensor,
    scale: tl.tensor,
    pages_stride: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    heads: tl.constexpr,
    kv_heads: tl.constexpr,
    dim: tl.constexpr,
    page_size: tl.constexpr,
    m: tl.constexpr,
    n: tl.constexpr,
) -> None:
    group: tl.constexpr = heads // kv_heads
    first_row = (tl.num_programs(0) - 1 - tl.program_id(0)) * m  # the tiles with the most keys first
    kv_head = tl.program_id(1)
    request = tl.program_id(2)
    offset = tl.load(cu_q_ptr + request)
    tokens = tl.load(cu_q_ptr + request + 1) - offset
    if first_row >= tokens * group:
        return
    start = tl.load(starts_ptr + request)
    index = first_row + tl.arange(0, m)  # of a token of the chunk and a head of the group
    token = index // group
    live = token < tokens
    d = tl.arange(0, dim)
    cells = (offset + token).to(tl.int64) * (heads * dim) + (kv_head * group + index % group) * dim
    q = tl.load(q_ptr + cells[:, None] + d[None, :], mask=live[:, None], other=0.0)
    k_ptr += kv_head * dim
    v_ptr += kv_head * dim
    table = pages_ptr + tl.load(rows_ptr + request) * pages_stride

    last = start + token  # the last position each row sees
    common = (start + first_row // group + 1) // n * n  # positions before it are seen by every row
    stop = start + tl.minimum((first_row + m - 1) // group + 1, tokens)  # positions from it on by none
    top = tl.full([m], float("-inf"), tl.float32)
    total = tl.zeros([m], tl.float32)
    acc = tl.zeros([m, dim], tl.float32)
    i = tl.arange(0, n)
    next_page = tl.load(table) if page_size % n == 0 else tl.load(table + i // page_size, mask=i < stop, other=0)
    for diagonal in tl.static_range(2):
        begin = common if diagonal else 0
        end = stop if diagonal else common
        for at in range(begin, end, n):
            page = next_page.to(tl.int64)
            position = at + i
            if page_size % n == 0:
                next_page = tl.load(table + (at + n) // page_size, mask=at + n < stop, other=0)
                slot = page * page_size + at % page_size
                k_tile = k_ptr + slot * k_stride + (i[None, :] * k_stride + d[:, None])
                v_tile = v_ptr + slot * v_stride + (i[:, None] * v_stride + d[None, :])
            else:
                next_page = tl.load(table + (position + n) // page_size, mask=position + n < stop, other=0)
                slot = page * page_size + position % page_size
                k_tile = k_ptr + slot[None, :] * k_stride + d[:, None]
                v_tile = v_ptr + slot[:, None] * v_stride + d[None, :]
            if diagonal:
                inside = position < stop
                k = tl.load(k_tile, mask=inside[None, :], other=0.0)
                v = tl.load(v_tile, mask=inside[:, None], other=0.0)
                seen = position[None, :] <= last[:, None]
            else:
                k = tl.load(k_tile)
                v = tl.load(v_tile)
                seen = tl.full([1, n], True, tl.int1)
            weights, top, decay, acc = take_keys(q, k, v, seen, top, acc, scale)
            total = total * decay + tl.sum(weights, 1)
    result = acc / total[:, None]  # each row has seen position 0 at least
    tl.store(out_ptr + cells[:, None] + d[None, :], result.to(out_ptr.dtype.element_ty), mask=live[:, None])


def extend_attention_reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    rows: torch.Tensor,
    pages: torch.Tensor,
    page_size: int,
    host_lengths: Sequence[int],
    host_q: Sequence[int],
) -> torch.Tensor:
    """`extend_attention` in torch, for any device and dtype: one SDPA a request over its gathered keys."""
    (_, heads, dim), kv_heads = q.shape, k.shape[1]
    position = torch.arange(max(host_lengths), device=q.device)
    page = pages[rows[:, None], position // page_size]  # int32 [B, longest]
    slots = torch.add(position % page_size, page, alpha=page_size)
    outs = []
    for index, (length, chunk, queries) in enumerate(zip(host_lengths, host_q, q.split(list(host_q)), strict=True)):
        seen = position[:length] <= position[length - chunk : length, None]  # [chunk, length]
        rows_seen = seen[:, None].expand(chunk, heads // kv_heads, length).reshape(-1, length)
        folded = queries.view(chunk, kv_heads, -1, dim).transpose(0, 1).reshape(1, kv_heads, -1, dim)
        keys, values = (pool[slots[index, :length]].transpose(0, 1)[None] for pool in (k, v))
        out = F.scaled_dot_product_attention(folded, keys, values, attn_mask=rows_seen)
        outs.append(out.view(kv_heads, chunk, -1, dim).transpose(0, 1).reshape(chunk, heads, dim))
    return torch.cat(outs)
