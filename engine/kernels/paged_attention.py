"""Attention of a few queries a request over its pages: decode, tree verification and draft nodes are all this.

Every query of a request sees its prefix, the keys of positions 0..lens - 1, through the page table. Behind it stand T
tail keys in any slots, which a query sees by the bits of its mask: the new tokens of a decode or verification, in the
request's own pages, or the nodes of a draft tree, in scratch slots.

One launch. A program holds the queries of one request that share a key head, so each key is read once, and walks the
prefix tile by tile: a tile within a page costs one look into the page table, made one tile ahead, so that the copies of
K and V are the only loads that a later one waits for. Where there are fewer programs than the GPU has room for, long
prefixes are split (Flash-Decoding, Dao et al. 2023). How many parts a request really has follows from its length, which
only the device knows: programs without a part leave at once, a request with one part writes its result directly, and of
several the last to finish merges them, in their order, so that the result does not depend on which came last.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.kernels.attention_tiles import (
    LEAST_KEYS,
    PROGRAMS_PER_SM,
    Tile,
    fitting,
    most_rows,
    servable,
    split_count,
    verify_tile,
)
from engine.kernels.card import multiprocessors
from engine.kernels.dispatch import check_contiguous, jit, tl, use_triton
from engine.kernels.online_softmax import LOG2_E, take_keys

ARRIVALS = 4096
"""Entries of the counters that programs of one split request meet at: see `new_arrivals`."""
MOST_TAIL = 64
"""Tail keys a request can have: bits of a mask."""


def new_arrivals(device: torch.device) -> torch.Tensor:
    """int32 [ARRIVALS], zeros: counters for all `paged_attention` calls of one stream. Each call leaves them zero."""
    return torch.zeros(ARRIVALS, dtype=torch.int32, device=device)


def paged_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    rows: torch.Tensor,
    width: int,
    pages: torch.Tensor,
    lens: torch.Tensor,
    page_size: int,
    tail_loc: torch.Tensor,
    tail_mask: torch.Tensor | None,
    bound: int,
    arrivals: torch.Tensor | None = None,
    tile: Tile | None = None,
) -> torch.Tensor:
    """q [B * width, H, D] (request-major), k and v [slots, Hkv, D] -> [B * width, H, D], scores scaled by D ** -0.5.

    Args:
        rows: int64 [B], rows of ``pages`` and ``lens``. The last dimension of every tensor is contiguous.
        pages: int32 [R, P], numbers; position p has slot pages[row, p // page_size] * page_size + p % page_size.
        lens: int32 [R], keys of the prefix.
        tail_loc: int64 [B, T], slots of the tail keys; T may be 0, at most MOST_TAIL.
        tail_mask: int64 [B, width], bit t: the query sees tail key t. None: every query sees all T.
        bound: at least the largest lens[row] + T of the batch; only this may decide on shapes and launches.
        arrivals: `new_arrivals`, kept by the caller. None: made for this call, which costs a launch more.
        tile: another layout of its programs than the one that attention_tiles.py gives; for measurements.

    A query that sees nothing gives zeros. Can be captured in a CUDA graph and replayed with other lengths, pages, slots
    and masks, up to the bound.

    Raises:
        ValueError: more than MOST_TAIL tail keys.
    """
    if tail_loc.shape[1] > MOST_TAIL:
        raise ValueError(f"{tail_loc.shape[1]} tail keys a request; a mask has bits for {MOST_TAIL}")
    check_contiguous(rows=rows, lens=lens)
    if not use_triton(q) or not servable(q.shape[-1], q.dtype):
        return paged_attention_reference(
            q,
            k,
            v,
            rows=rows,
            width=width,
            pages=pages,
            lens=lens,
            page_size=page_size,
            tail_loc=tail_loc,
            tail_mask=tail_mask,
            bound=bound,
        )
    (requests, tail), (_, heads, dim), kv_heads = tail_loc.shape, q.shape, k.shape[1]
    q, out = q.contiguous(), torch.empty(q.shape, dtype=q.dtype, device=q.device)
    queries = width * (heads // kv_heads)
    sms = multiprocessors(q.device)
    row_blocks = -(-queries // most_rows(dim, q.dtype))
    programs = requests * kv_heads * row_blocks
    if tile is None:
        tile = verify_tile(queries, tail, dim, q.dtype, few=programs <= PROGRAMS_PER_SM * sms)
        tile = fitting(tile, dim, q.element_size(), q.device, tail)
    splits = split_count(programs, bound - tail, sms)
    partial = stats = counts = out  # not looked at
    if splits > 1:
        partial = torch.empty(programs * splits * tile.rows * dim, dtype=torch.float32, device=q.device)
        stats = torch.empty(programs * splits * tile.rows * 2, dtype=torch.float32, device=q.device)
        counts = new_arrivals(q.device) if arrivals is None else arrivals
    _attend[(programs, splits)](
        q,
        k,
        v,
        out,
        rows,
        pages,
        lens,
        tail_loc,
        out if tail_mask is None else tail_mask,
        partial,
        stats,
        counts,
        dim**-0.5 * LOG2_E,
        splits,
        -(-LEAST_KEYS // tile.keys),
        tail,
        tail_loc.stride(0),
        0 if tail_mask is None else tail_mask.stride(0),
        pages.stride(0),
        k.stride(0),
        v.stride(0),
        heads=heads,
        kv_heads=kv_heads,
        dim=dim,
        width=width,
        page_size=page_size,
        row_blocks=row_blocks,
        m=tile.rows,
        n=tile.keys,
        has_tail=tail > 0,
        split=splits > 1,
        masked=tail > 0 and tail_mask is not None,
        num_warps=tile.warps,
        num_stages=tile.stages,
        maxnreg=tile.registers,
    )
    return out


@jit
def _attend(
    q_ptr: tl.tensor,
    k_ptr: tl.tensor,
    v_ptr: tl.tensor,
    out_ptr: tl.tensor,
    rows_ptr: tl.tensor,
    pages_ptr: tl.tensor,
    lens_ptr: tl.tensor,
    tail_ptr: tl.tensor,
    mask_ptr: tl.tensor,
    partial_ptr: tl.tensor,
    stats_ptr: tl.tensor,
    counts_ptr: tl.tensor,
    scale: tl.tensor,
    splits: tl.tensor,
    least_tiles: tl.tensor,
    tail: tl.tensor,
    tail_stride: tl.tensor,
    mask_stride: tl.tensor,
    pages_stride: tl.tensor,
    k_stride: tl.tensor,
    v_stride: tl.tensor,
    heads: tl.constexpr,
    kv_heads: tl.constexpr,
    dim: tl.constexpr,
    width: tl.constexpr,
    page_size: tl.constexpr,
    row_blocks: tl.constexpr,
    m: tl.constexpr,
    n: tl.constexpr,
    has_tail: tl.constexpr,
    split: tl.constexpr,
    masked: tl.constexpr,
) -> None:
    group: tl.constexpr = heads // kv_heads
    program = tl.program_id(0)  # key heads of a request next to each other: they read the same stretch of the pool
    kv_head = program % kv_heads
    request = program // kv_heads // row_blocks
    row = tl.load(rows_ptr + request)
    length = tl.load(lens_ptr + row)
    tail_at = tl.cdiv(length, n) * n  # the tail is one more tile, behind those of the prefix
    begin = 0
    stop = tail_at
    part = tl.program_id(1)
    parts = 1
    if split:
        part_tiles = tl.maximum(tl.cdiv(tail_at // n, splits), least_tiles)
        parts = tl.maximum(tl.cdiv(tail_at // n, part_tiles), 1)
        if part >= parts:
            return
        begin = part * part_tiles * n
        stop = tl.minimum(begin + part_tiles * n, tail_at)
    if has_tail & (part == parts - 1):
        stop += n

    index = program // kv_heads % row_blocks * m + tl.arange(0, m)  # of a query and a head of the group
    query = index // group
    live = query < width
    d = tl.arange(0, dim)
    cells = (request * width + query).to(tl.int64) * (heads * dim) + (kv_head * group + index % group) * dim
    q = tl.load(q_ptr + cells[:, None] + d[None, :], mask=live[:, None], other=0.0)
    k_ptr += kv_head * dim
    v_ptr += kv_head * dim
    i = tl.arange(0, n)
    if has_tail:
        tail_slot = tl.load(tail_ptr + request * tail_stride + i, mask=i < tail, other=0).to(tl.int32)
    if masked:
        bits = tl.load(mask_ptr + request * mask_stride + query, mask=live, other=0)
        if n <= 32:
            bits = bits.to(tl.int32)

    top = tl.full([m], float("-inf"), tl.float32)
    total = tl.zeros([m], tl.float32)
    weight_sum = tl.zeros([m, n], tl.float32)  # summed over keys after the loop: one reduction across warps a tile less
    acc = tl.zeros([m, dim], tl.float32)
    table = pages_ptr + row * pages_stride
    if page_size % n == 0:
        next_page = tl.load(table + begin // page_size)
    else:
        next_page = tl.load(table + (begin + i) // page_size, mask=begin + i < length, other=0)
    for start in range(begin, stop, n):
        position = start + i
        page = next_page
        if page_size % n == 0:
            next_page = tl.load(table + (start + n) // page_size, mask=start + n < length, other=0)
            slot = page * page_size + (start % page_size + i)
        else:
            next_page = tl.load(table + (position + n) // page_size, mask=position + n < length, other=0)
            slot = page * page_size + position % page_size
        inside = position < length
        if has_tail:
            is_tail = start == tail_at
            slot = tl.where(is_tail, tail_slot, slot)
            inside = tl.where(is_tail, i < tail, inside)
        seen = inside[None, :]
        if masked:
            seen = seen & (((tl.where(is_tail, bits, -1)[:, None] >> i[None, :]) & 1) != 0)
        slot = slot.to(tl.int64)  # of an element it can pass 2 ** 31, of a slot not
        k = tl.load(k_ptr + slot[None, :] * k_stride + d[:, None], mask=inside[None, :], other=0.0)
        v = tl.load(v_ptr + slot[:, None] * v_stride + d[None, :], mask=inside[:, None], other=0.0)
        weights, top, decay, acc = take_keys(q, k, v, seen, top, acc, scale)
        if m <= 32:
            weight_sum = weight_sum * decay[:, None] + weights
        else:  # a row lies within a warp
            total = total * decay + tl.sum(weights, 1)
    if m <= 32:
        total = tl.sum(weight_sum, 1)

    if split and parts > 1:
        mine = (program * splits + part).to(tl.int64) * m + tl.arange(0, m)
        tl.store(partial_ptr + mine[:, None] * dim + d[None, :], acc)
        tl.store(stats_ptr + mine * 2, top)
        tl.store(stats_ptr + mine * 2 + 1, total)
        tl.debug_barrier()  # all of the program's stores, before its one thread says that they are made
        if tl.atomic_add(counts_ptr + program, 1, sem="acq_rel", scope="gpu") < parts - 1:
            return
        tl.store(counts_ptr + program, 0)  # for the next call
        top = tl.full([m], float("-inf"), tl.float32)
        total = tl.zeros([m], tl.float32)
        acc = tl.zeros([m, dim], tl.float32)
        for first in range(0, parts, 4):
            for step in tl.static_range(4):  # four at a time on the way
                has_part = first + step < parts
                its = (program * splits + first + step).to(tl.int64) * m + tl.arange(0, m)
                its_top = tl.load(stats_ptr + its * 2, mask=has_part, other=float("-inf"), cache_modifier=".cg")
                its_total = tl.load(stats_ptr + its * 2 + 1, mask=has_part, other=0.0, cache_modifier=".cg")
                its_cells = partial_ptr + its[:, None] * dim + d[None, :]
                its_acc = tl.load(its_cells, mask=has_part, other=0.0, cache_modifier=".cg")
                new_top = tl.maximum(top, its_top)
                finite = tl.where(new_top == float("-inf"), 0.0, new_top)
                decay = tl.math.exp2(top - finite)
                share = tl.math.exp2(its_top - finite)
                total = total * decay + its_total * share
                acc = acc * decay[:, None] + its_acc * share[:, None]
                top = new_top
    result = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(out_ptr + cells[:, None] + d[None, :], result.to(out_ptr.dtype.element_ty), mask=live[:, None])


def paged_attention_reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    rows: torch.Tensor,
    width: int,
    pages: torch.Tensor,
    lens: torch.Tensor,
    page_size: int,
    tail_loc: torch.Tensor,
    tail_mask: torch.Tensor | None,
    bound: int,
) -> torch.Tensor:
    """`paged_attention` in torch, for any device and dtype: keys gathered, padded to ``bound``, one SDPA."""
    (requests, tail), (_, heads, dim), kv_heads = tail_loc.shape, q.shape, k.shape[1]
    group = heads // kv_heads
    prefix = max(bound - tail, 0)
    position = torch.arange(prefix, device=q.device)
    page = pages[rows[:, None], (position // page_size).clamp_(max=pages.shape[1] - 1)]  # int32 [B, prefix]
    slots = torch.cat([torch.add(position % page_size, page, alpha=page_size), tail_loc], 1)  # [B, L]
    in_prefix = (position < lens[rows, None])[:, None].expand(requests, width, prefix)
    if tail_mask is None:
        in_tail = torch.ones(requests, width, tail, dtype=torch.bool, device=q.device)
    else:
        in_tail = ((tail_mask[..., None] >> torch.arange(tail, device=q.device)) & 1).bool()
    seen = torch.cat([in_prefix, in_tail], 2)  # [B, width, L]
    seen = seen[:, None, :, None].expand(-1, 1, width, group, -1).reshape(requests, 1, width * group, -1)
    folded = q.reshape(requests, width, kv_heads, group, dim).transpose(1, 2).reshape(requests, kv_heads, -1, dim)
    out = F.scaled_dot_product_attention(folded, k[slots].transpose(1, 2), v[slots].transpose(1, 2), attn_mask=seen)
    out = out.masked_fill(~seen.any(-1, keepdim=True), 0.0)
    return out.view(requests, kv_heads, width, group, dim).transpose(1, 2).reshape(requests * width, heads, dim)
