"""The end of a step on the device: each request's newest token and committed length, ready for the next step."""

from __future__ import annotations

import torch

from engine.kernels.dispatch import check_contiguous, jit, tl, use_triton

BLOCK = 128
"""Requests of a program; the same for any batch, so that one kernel is compiled."""


def advance(
    rows: torch.Tensor,
    kept: torch.Tensor,
    emitted: torch.Tensor,
    tokens: torch.Tensor,
    lens: torch.Tensor,
    pad_row: int,
) -> None:
    """tokens[row] = emitted[b, kept - 1] and lens[row] += kept, in place; rows equal to `pad_row` are left alone.

    rows int64 [B] (no row twice, padding apart), kept int32 [B] (0 changes nothing), emitted int64 [B, E]; the state:
    tokens int64 [R], lens int32 [R].
    """
    check_contiguous(rows=rows, kept=kept, tokens=tokens, lens=lens)
    (_advance_triton if use_triton(tokens) else advance_reference)(rows, kept, emitted, tokens, lens, pad_row)


def advance_reference(
    rows: torch.Tensor,
    kept: torch.Tensor,
    emitted: torch.Tensor,
    tokens: torch.Tensor,
    lens: torch.Tensor,
    pad_row: int,
) -> None:
    """`advance` in torch."""
    moves = (rows != pad_row) & (kept > 0)  # [B]
    last = emitted.gather(1, (kept.long() - 1).clamp_min(0)[:, None])[:, 0]
    # Rows that stay are written too, with what they hold: no shape depends on the data.
    tokens[rows] = torch.where(moves, last, tokens[rows])
    lens[rows] = lens[rows] + torch.where(moves, kept, 0)


def _advance_triton(
    rows: torch.Tensor,
    kept: torch.Tensor,
    emitted: torch.Tensor,
    tokens: torch.Tensor,
    lens: torch.Tensor,
    pad_row: int,
) -> None:
    n = rows.shape[0]
    if n:
        _advance_kernel[(-(-n // BLOCK),)](
            rows, kept, emitted, tokens, lens, n, emitted.stride(0), pad_row, block=BLOCK
        )


@jit(
    do_not_specialize=["n", "stride", "pad_row"],
    do_not_specialize_on_alignment=["rows_ptr", "kept_ptr", "emitted_ptr"],
)
def _advance_kernel(
    rows_ptr: tl.tensor,
    kept_ptr: tl.tensor,
    emitted_ptr: tl.tensor,
    tokens_ptr: tl.tensor,
    lens_ptr: tl.tensor,
    n: tl.tensor,
    stride: tl.tensor,
    pad_row: tl.tensor,
    block: tl.constexpr,
) -> None:
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    row = tl.load(rows_ptr + at, mask=inside, other=0)
    kept = tl.load(kept_ptr + at, mask=inside, other=0)
    moves = inside & (kept > 0) & (row != pad_row)
    token = tl.load(emitted_ptr + at.to(tl.int64) * stride + kept - 1, mask=moves, other=0)
    length = tl.load(lens_ptr + row, mask=moves, other=0)
    tl.store(tokens_ptr + row, token, mask=moves)
    tl.store(lens_ptr + row, length + kept, mask=moves)
