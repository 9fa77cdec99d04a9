"""Tree masks as the dense bit matrices that FlashInfer reads: a bit for each query and key, requests back to back.

A request's bits begin at a byte: query q and key n of its L keys are bit q * L + n, lowest bit first. Every query sees
the keys before the last ``width``; of those, the new tokens, it sees what its int64 mask says.
"""

from __future__ import annotations

import torch

from engine.kernels.dispatch import jit, tl, use_triton

BLOCK = 256
"""Bytes a program packs."""


def pack_masks(masks: torch.Tensor, lengths: torch.Tensor, offsets: torch.Tensor, most: int, out: torch.Tensor) -> None:
    """Into ``out``, uint8. No sync, so that a graph can hold it: lengths and offsets may change between replays.

    Args:
        masks: int64 [B, width], bit t of a query: it sees new token t.
        lengths: int32 [B], keys of each request, the ``width`` new ones included (of a row that only pads, any number).
        offsets: int32 [B + 1], byte in ``out`` at which each request begins, and the end.
        most: bytes that the longest request can take.
    """
    if not use_triton(masks):
        pack_masks_reference(masks, lengths, offsets, out)
        return
    requests, width = masks.shape
    _pack_kernel[(requests, -(-most // BLOCK))](
        masks, lengths, offsets, out, masks.stride(0), width=width, block=BLOCK, num_warps=4
    )


@jit
def _pack_kernel(
    masks_ptr: tl.tensor,
    lengths_ptr: tl.tensor,
    offsets_ptr: tl.tensor,
    out_ptr: tl.tensor,
    stride: tl.tensor,
    width: tl.constexpr,
    block: tl.constexpr,
) -> None:
    request = tl.program_id(0)
    begin = tl.load(offsets_ptr + request)
    size = tl.load(offsets_ptr + request + 1) - begin
    first = tl.program_id(1) * block
    if first >= size:
        return
    length = tl.load(lengths_ptr + request)
    byte = first + tl.arange(0, block)
    bit = tl.arange(0, 8)
    at = byte[:, None] * 8 + bit[None, :]
    query = at // length
    new = at % length - (length - width)  # which of the new tokens this key is; negative: one of the prefix
    inside = query < width
    mask = tl.load(masks_ptr + request * stride + query, mask=inside & (new >= 0), other=-1)
    seen = (mask >> tl.maximum(new, 0).to(tl.int64)) & 1
    packed = tl.sum(tl.where(inside, seen.to(tl.int32) << bit[None, :], 0), 1)
    tl.store(out_ptr + begin + byte, packed.to(tl.uint8), mask=byte < size)


def pack_masks_reference(masks: torch.Tensor, lengths: torch.Tensor, offsets: torch.Tensor, out: torch.Tensor) -> None:
    """`pack_masks` in torch, a request at a time; reads lengths on the host."""
    width = masks.shape[1]
    spans = zip(masks, lengths.tolist(), offsets.tolist(), strict=False)
    for mine, length, begin in spans:
        new = torch.arange(length, device=masks.device) - (length - width)
        seen = ((mine[:, None] >> new.clamp(min=0)) & 1).masked_fill(new < 0, 1).flatten()  # [width * length]
        bits = torch.nn.functional.pad(seen, (0, -seen.numel() % 8)).view(-1, 8)
        packed = (bits << torch.arange(8, device=masks.device)).sum(1)
        out[begin : begin + packed.numel()] = packed.to(torch.uint8)
