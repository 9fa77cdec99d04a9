"""Where the next tokens of each request go: slots by the page table, and positions. One launch for both."""

from __future__ import annotations

import torch

from engine.kernels.dispatch import check_contiguous, jit, next_power_of_2, tl, use_triton


def upcoming(
    rows: torch.Tensor,
    lens: torch.Tensor,
    pages: torch.Tensor,
    page_size: int,
    depths: torch.Tensor | None,
    loc: torch.Tensor,
) -> torch.Tensor:
    """Slots of positions lens[row]..lens[row] + W - 1 into loc int64 [B, W]; positions int64 [B, W] come back.

    rows int64 [B]; the state: lens int32 [R], pages int32 [R, P]. Without ``depths`` a token's position is that of its
    slot. With them, int32 [B, W], it is lens[row] + depth: node n of a tree has the n-th slot, whatever its depth.
    """
    check_contiguous(rows=rows, lens=lens, loc=loc)
    upcome = _upcoming_triton if use_triton(loc) else upcoming_reference
    return upcome(rows, lens, pages, page_size, depths, loc)


def upcoming_reference(
    rows: torch.Tensor,
    lens: torch.Tensor,
    pages: torch.Tensor,
    page_size: int,
    depths: torch.Tensor | None,
    loc: torch.Tensor,
) -> torch.Tensor:
    """`upcoming` in torch."""
    behind = lens[rows][:, None] + torch.arange(loc.shape[1], device=loc.device)  # int64 [B, W]
    page = pages[rows[:, None], behind // page_size]
    torch.add(behind % page_size, page, alpha=page_size, out=loc)
    return behind if depths is None else behind[:, :1] + depths


def _upcoming_triton(
    rows: torch.Tensor,
    lens: torch.Tensor,
    pages: torch.Tensor,
    page_size: int,
    depths: torch.Tensor | None,
    loc: torch.Tensor,
) -> torch.Tensor:
    batch, width = loc.shape
    positions = torch.empty_like(loc)
    if depths is not None:
        check_contiguous(depths=depths)
    _upcoming_kernel[(batch,)](
        rows,
        lens,
        pages,
        positions if depths is None else depths,  # some pointer: it is not read
        loc,
        positions,
        pages.stride(0),
        page_size=page_size,
        width=width,
        has_depths=depths is not None,
        block=next_power_of_2(width),
        num_warps=1,
    )
    return positions


@jit(
    do_not_specialize=["page_stride"],
    do_not_specialize_on_alignment=["rows_ptr", "depths_ptr", "loc_ptr", "positions_ptr"],
)
def _upcoming_kernel(
    rows_ptr: tl.tensor,
    lens_ptr: tl.tensor,
    pages_ptr: tl.tensor,
    depths_ptr: tl.tensor,
    loc_ptr: tl.tensor,
    positions_ptr: tl.tensor,
    page_stride: tl.tensor,
    page_size: tl.constexpr,
    width: tl.constexpr,
    has_depths: tl.constexpr,
    block: tl.constexpr,
) -> None:
    request = tl.program_id(0).to(tl.int64)
    lane = tl.arange(0, block)
    inside = lane < width
    row = tl.load(rows_ptr + request)
    length = tl.load(lens_ptr + row)
    behind = length + lane  # int32 [block]
    page = tl.load(pages_ptr + row * page_stride + behind // page_size, mask=inside, other=0).to(tl.int64)
    out = request * width + lane
    tl.store(loc_ptr + out, page * page_size + behind % page_size, mask=inside)
    position = length + tl.load(depths_ptr + out, mask=inside, other=0) if has_depths else behind
    tl.store(positions_ptr + out, position.to(tl.int64), mask=inside)
