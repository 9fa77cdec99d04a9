"""A plain decode's hidden states join those that wait for the draft: a row of each request's ring, in one launch."""

from __future__ import annotations

import torch

from engine.kernels.dispatch import check_contiguous, jit, next_power_of_2, tl, use_triton


def push(
    rows: torch.Tensor,
    aux: torch.Tensor,
    next_ids: torch.Tensor,
    aux_ring: torch.Tensor,
    ring_ids: torch.Tensor,
    ring_len: torch.Tensor,
) -> None:
    """aux[b] and next_ids[b] go to place ring_len[row] of their row's ring, and its length grows by one, in place.

    rows int64 [B] (no row twice, padding apart), aux [B, A], next_ids int64 [B]: the token after. The state: aux_ring
    [R, n, A], ring_ids int64 [R, n], ring_len int32 [R]. A full ring stays full, its last place is overwritten: it
    belongs to a request that does not draft, or to padding.
    """
    check_contiguous(rows=rows, aux=aux, next_ids=next_ids, aux_ring=aux_ring, ring_ids=ring_ids)
    (_push_triton if use_triton(aux) else push_reference)(rows, aux, next_ids, aux_ring, ring_ids, ring_len)


def push_reference(
    rows: torch.Tensor,
    aux: torch.Tensor,
    next_ids: torch.Tensor,
    aux_ring: torch.Tensor,
    ring_ids: torch.Tensor,
    ring_len: torch.Tensor,
) -> None:
    """`push` in torch."""
    size = ring_ids.shape[1]
    waiting = ring_len[rows]  # int32 [B]
    place = torch.add(waiting.clamp_max(size - 1), rows, alpha=size)
    aux_ring.view(-1, aux.shape[1]).index_copy_(0, place, aux)
    ring_ids.view(-1).index_copy_(0, place, next_ids)
    ring_len.index_copy_(0, rows, (waiting + 1).clamp_max(size))


def _push_triton(
    rows: torch.Tensor,
    aux: torch.Tensor,
    next_ids: torch.Tensor,
    aux_ring: torch.Tensor,
    ring_ids: torch.Tensor,
    ring_len: torch.Tensor,
) -> None:
    batch, width = aux.shape
    block = min(next_power_of_2(width), 4096)
    _push_kernel[(batch,)](
        rows,
        aux,
        next_ids,
        aux_ring,
        ring_ids,
        ring_len,
        width=width,
        size=ring_ids.shape[1],
        block=block,
        num_warps=max(block // 512, 1),
    )


@jit(do_not_specialize_on_alignment=["rows_ptr", "next_ids_ptr"])
def _push_kernel(
    rows_ptr: tl.tensor,
    aux_ptr: tl.tensor,
    next_ids_ptr: tl.tensor,
    aux_ring_ptr: tl.tensor,
    ring_ids_ptr: tl.tensor,
    ring_len_ptr: tl.tensor,
    width: tl.constexpr,
    size: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """One request a program, so that nobody reads a length that another has already raised."""
    request = tl.program_id(0).to(tl.int64)
    row = tl.load(rows_ptr + request)
    waiting = tl.load(ring_len_ptr + row)
    place = row * size + tl.minimum(waiting, size - 1)
    lane = tl.arange(0, block)
    for start in tl.static_range(0, width, block):
        inside = start + lane < width
        values = tl.load(aux_ptr + request * width + start + lane, mask=inside, other=0.0)
        tl.store(aux_ring_ptr + place * width + start + lane, values, mask=inside)
    tl.store(ring_ids_ptr + place, tl.load(next_ids_ptr + request))
    tl.store(ring_len_ptr + row, tl.minimum(waiting + 1, size))
