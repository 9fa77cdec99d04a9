"""The gate of a Llama MLP: silu(gate) * up, from the output of the gate and up products."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.kernels.dispatch import jit, next_power_of_2, tl, use_triton

FEW_ROWS = 64
"""Up to here a row is spread over more programs. Beyond, the GPU has enough of them, and starting them takes time."""


def _columns(rows: int) -> int:
    """Columns a program of four warps, eight a thread (a row of 14,336 is then 14 programs), with many rows 16."""
    return 1024 if rows <= FEW_ROWS else 2048


def silu_mul(gate_up: torch.Tensor, together: int) -> torch.Tensor:
    """silu(gate) * up in float32, rounded once. [N, 2 I] -> [N, I].

    ``gate_up``: ``together`` gates, as many ups, and so on in turn; its rows may lie apart.

    Raises:
        ValueError: I is no multiple of ``together``, at least 1.
    """
    if together < 1 or gate_up.shape[1] % (2 * together):
        raise ValueError(f"{gate_up.shape[1]} columns are not {together} gates, {together} ups, and so on in turn")
    return _silu_mul_triton(gate_up, together) if use_triton(gate_up) else silu_mul_reference(gate_up, together)


def silu_mul_reference(gate_up: torch.Tensor, together: int) -> torch.Tensor:
    """`silu_mul` in torch; float64 stays float64."""
    pairs = gate_up.unflatten(1, (-1, 2, together))
    gate, up = pairs.to(torch.promote_types(gate_up.dtype, torch.float32)).unbind(2)  # [N, blocks, together] each
    gated: torch.Tensor = F.silu(gate) * up
    return gated.to(gate_up.dtype).flatten(1)


def _silu_mul_triton(gate_up: torch.Tensor, together: int) -> torch.Tensor:
    n, inner = gate_up.shape[0], gate_up.shape[1] // 2
    out = torch.empty((n, inner), dtype=gate_up.dtype, device=gate_up.device)
    block = min(_columns(n), next_power_of_2(inner))
    grid = (n, -(-inner // block))
    warps = min(max(block // 256, 1), 4)
    _silu_mul_kernel[grid](
        gate_up, out, gate_up.stride(0), inner=inner, together=together, block=block, num_warps=warps
    )
    return out


@jit
def _silu_mul_kernel(
    gate_up_ptr: tl.tensor,
    out_ptr: tl.tensor,
    stride: tl.tensor,
    inner: tl.constexpr,
    together: tl.constexpr,
    block: tl.constexpr,
) -> None:
    row = tl.program_id(0).to(tl.int64)
    cols = tl.program_id(1) * block + tl.arange(0, block)
    inside = cols < inner
    at = gate_up_ptr + row * stride + cols + cols // together * together
    gate = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(at + together, mask=inside, other=0.0).to(tl.float32)
    # Where exp overflows the quotient is zero, as it should be.
    gated = gate / (1.0 + tl.exp(-gate)) * up
    tl.store(out_ptr + row * inner + cols, gated.to(out_ptr.dtype.element_ty), mask=inside)
