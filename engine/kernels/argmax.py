"""Greedy choice: the likeliest token of each row, ties to the lowest id.

Two stages: parts of a row side by side, so that a single row of 128,256 keeps the GPU busy, then the best of the parts.
With many rows a row is one part, and the first stage has the answer.
"""

from __future__ import annotations

import torch

from engine.kernels.dispatch import check_contiguous, jit, next_power_of_2, tl, use_triton

PROGRAMS = 528
"""Programs that the first stage spreads its rows over: about four for each multiprocessor of an H200."""


def greedy(logits: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """[N, V], rows may lie apart -> int64 [N], in `out` (contiguous) where one is given.

    A row with NaN gives some id below V.
    """
    return _greedy_triton(logits, out) if use_triton(logits) else greedy_reference(logits, out)


def greedy_reference(logits: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """`greedy` in torch, whose argmax gives the first of equal maxima."""
    chosen = logits.argmax(dim=-1)
    return chosen if out is None else out.copy_(chosen)


def _greedy_triton(logits: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
    n, vocab = logits.shape
    if out is None:
        out = torch.empty(n, dtype=torch.int64, device=logits.device)
    check_contiguous(out=out)
    if not n:
        return out
    block = min(2048 if n < PROGRAMS // 4 else 4096, next_power_of_2(vocab))
    blocks = -(-vocab // block)
    blocks_a_part = -(-blocks // min(-(-PROGRAMS // n), blocks))
    parts = -(-blocks // blocks_a_part)
    best = torch.empty((n, parts), dtype=torch.float32, device=logits.device)
    where = torch.empty((n, parts), dtype=torch.int64, device=logits.device)
    _part_kernel[(n, parts)](
        logits,
        best,
        out if parts == 1 else where,
        logits.stride(0),
        vocab=vocab,
        part=blocks_a_part * block,
        parts=parts,
        block=block,
        num_warps=8,
    )
    if parts > 1:
        _merge_kernel[(n,)](best, where, out, parts=parts, block=next_power_of_2(parts), num_warps=1)
    return out


@jit(do_not_specialize_on_alignment=["where_ptr"])
def _part_kernel(
    logits_ptr: tl.tensor,
    best_ptr: tl.tensor,
    where_ptr: tl.tensor,
    stride: tl.tensor,
    vocab: tl.constexpr,
    part: tl.constexpr,
    parts: tl.constexpr,
    block: tl.constexpr,
) -> None:
    """The maximum of one part of one row, and the lowest id that has it. `part` is a multiple of `block`."""
    row = tl.program_id(0).to(tl.int64)
    start = tl.program_id(1) * part
    lane = tl.arange(0, block)
    best = tl.full([block], float("-inf"), tl.float32)
    # A part that holds nothing above -inf answers with its first id.
    where = tl.full([block], 0, tl.int32) + start + lane
    for offset in range(0, part, block):
        ids = start + offset + lane
        value = tl.load(logits_ptr + row * stride + ids, mask=ids < vocab, other=float("-inf")).to(tl.float32)
        better = value > best  # never for NaN; strictly, so that the lower id stays
        best = tl.where(better, value, best)
        where = tl.where(better, ids, where)
    most = tl.max(best, axis=0)
    lowest = tl.min(tl.where(best == most, where, 2147483647), axis=0)
    at = row * parts + tl.program_id(1)
    tl.store(best_ptr + at, most)
    tl.store(where_ptr + at, lowest.to(tl.int64))


@jit(do_not_specialize_on_alignment=["out_ptr"])
def _merge_kernel(
    best_ptr: tl.tensor, where_ptr: tl.tensor, out_ptr: tl.tensor, parts: tl.constexpr, block: tl.constexpr
) -> None:
    row = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, block)
    inside = lane < parts
    best = tl.load(best_ptr + row * parts + lane, mask=inside, other=float("-inf"))
    where = tl.load(where_ptr + row * parts + lane, mask=inside, other=9223372036854775807)
    most = tl.max(best, axis=0)
    tl.store(out_ptr + row, tl.min(tl.where(best == most, where, 9223372036854775807), axis=0))
