"""RMS norm (arXiv 1910.07467), and the same behind the residual's addition: one program a row, one pass over it.

The arithmetic is float32 from the loaded values to the stored ones, rounded once, as in engine/models/llama.py.
"""

from __future__ import annotations

import torch

from engine.kernels.dispatch import jit, next_power_of_2, tl, use_triton


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x / sqrt(mean(x^2) + eps) * weight, by row. x [N, H] (rows may lie apart), weight [H] -> [N, H] in x's dtype."""
    return _rms_norm_triton(x, weight, eps) if use_triton(x) else rms_norm_reference(x, weight, eps)


def add_rms_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """residual += x, in place and rounded to its dtype; returns the norm of the sum.

    x, residual [N, H] (rows may lie apart), weight [H] -> [N, H] in x's dtype.
    """
    if use_triton(x):
        return _add_rms_norm_triton(x, residual, weight, eps)
    return add_rms_norm_reference(x, residual, weight, eps)


def rms_norm_reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """`rms_norm` in torch; float64 stays float64."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    unit = wide * torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return (unit * weight.to(wide.dtype)).to(x.dtype)


def add_rms_norm_reference(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """`add_rms_norm` in torch."""
    residual.add_(x)
    return rms_norm_reference(residual, weight, eps).to(x.dtype)


FEW_ROWS = 528
"""Up to here (four programs of 512 threads on each of an H200's multiprocessors) all rows run at the same time."""


def _warps(rows: int, block: int) -> int:
    """Eight elements a thread, in bfloat16 one load of 16 bytes; with many rows 16, so that more rows fit at once."""
    return min(max(block // (256 if rows <= FEW_ROWS else 512), 1), 16)


def _rms_norm_triton(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    n, hidden = x.shape
    out = torch.empty((n, hidden), dtype=x.dtype, device=x.device)
    block = next_power_of_2(hidden)
    _rms_norm_kernel[(n,)](x, weight, out, x.stride(0), eps, hidden=hidden, block=block, num_warps=_warps(n, block))
    return out


def _add_rms_norm_triton(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    n, hidden = x.shape
    out = torch.empty((n, hidden), dtype=x.dtype, device=x.device)
    block = next_power_of_2(hidden)
    _add_rms_norm_kernel[(n,)](
        x,
        residual,
        weight,
        out,
        x.stride(0),
        residual.stride(0),
        eps,
        hidden=hidden,
        block=block,
        num_warps=_warps(n, block),
    )
    return out


@jit
def _rms_norm_kernel(
    x_ptr: tl.tensor,
    weight_ptr: tl.tensor,
    out_ptr: tl.tensor,
    x_stride: tl.tensor,
    eps: tl.tensor,
    hidden: tl.constexpr,
    block: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, block)
    inside = cols < hidden
    # The weight is asked for before the reduction waits for the row.
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * x_stride + cols, mask=inside, other=0.0).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / hidden + eps) * weight
    tl.store(out_ptr + row * hidden + cols, y.to(out_ptr.dtype.element_ty), mask=inside)


@jit
def _add_rms_norm_kernel(
    x_ptr: tl.tensor,
    residual_ptr: tl.tensor,
    weight_ptr: tl.tensor,
    out_ptr: tl.tensor,
    x_stride: tl.tensor,
    residual_stride: tl.tensor,
    eps: tl.tensor,
    hidden: tl.constexpr,
    block: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, block)
    inside = cols < hidden
    weight = tl.load(weight_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * x_stride + cols, mask=inside, other=0.0).to(tl.float32)
    at = residual_ptr + row * residual_stride + cols
    total = (tl.load(at, mask=inside, other=0.0).to(tl.float32) + x).to(residual_ptr.dtype.element_ty)
    tl.store(at, total, mask=inside)
    stream = total.to(tl.float32)  # as it was stored: what the next layer will add to is what is normed here
    y = stream * tl.rsqrt(tl.sum(stream * stream, axis=0) / hidden + eps) * weight
    tl.store(out_ptr + row * hidden + cols, y.to(out_ptr.dtype.element_ty), mask=inside)
