"""Keyed uniform draws on any device: the numbers of engine/keyed_uniform.py, bit for bit."""

from __future__ import annotations

import torch

from engine.kernels.dispatch import jit, tl, use_triton

BLOCK = 128
"""Draws of a program; the same for any batch, so that one kernel is compiled."""

# SplitMix64 (Steele, Lea, Flood, OOPSLA 2014); torch has no uint64 arithmetic, int64 wraps to the same bits.
_GOLDEN = 0x9E3779B97F4A7C15 - 2**64
_FIRST = 0xBF58476D1CE4E5B9 - 2**64
_SECOND = 0x94D049BB133111EB - 2**64


def signed_seed(seed: int) -> int:
    """A seed as int64 tensors hold it: modulo 2^64, the upper half negative."""
    return (seed + 2**63) % 2**64 - 2**63


def keyed_uniform(seeds: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """One draw in [0, 1) for each pair. seeds (see `signed_seed`), positions int64 [N] -> float64 [N], same device."""
    return _keyed_triton(seeds, positions) if use_triton(seeds) else keyed_uniform_reference(seeds, positions)


def keyed_uniform_reference(seeds: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """`keyed_uniform` in torch."""
    state = _mix(_mix(seeds + _GOLDEN) + (positions + 1) * _GOLDEN)
    return _shift_right(state, 11).to(torch.float64) * 2.0**-53


def _shift_right(z: torch.Tensor, by: int) -> torch.Tensor:
    """Bits move in as zeros, also for negative z."""
    return (z >> by) & ((1 << (64 - by)) - 1)


def _mix(z: torch.Tensor) -> torch.Tensor:
    z = (z ^ _shift_right(z, 30)) * _FIRST
    z = (z ^ _shift_right(z, 27)) * _SECOND
    return z ^ _shift_right(z, 31)


def _keyed_triton(seeds: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    seeds, positions = seeds.contiguous(), positions.contiguous()
    n = seeds.numel()
    out = torch.empty(n, dtype=torch.float64, device=seeds.device)
    if n:
        _keyed_kernel[(-(-n // BLOCK),)](seeds, positions, out, n, block=BLOCK)
    return out


@jit
def _mixed(z: tl.tensor) -> tl.tensor:
    """SplitMix64's finalizer on int64: an arithmetic shift, then the bits that came in cleared.

    The numbers are `_FIRST` and `_SECOND`, below `_GOLDEN`: a kernel can name nothing of its module.
    """
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * -4658895280553007687
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * -7723592293110705685
    return z ^ ((z >> 31) & 0x1FFFFFFFF)


@jit(do_not_specialize=["n"], do_not_specialize_on_alignment=["seeds_ptr", "positions_ptr"])
def _keyed_kernel(
    seeds_ptr: tl.tensor, positions_ptr: tl.tensor, out_ptr: tl.tensor, n: tl.tensor, block: tl.constexpr
) -> None:
    at = tl.program_id(0) * block + tl.arange(0, block)
    inside = at < n
    seed = tl.load(seeds_ptr + at, mask=inside, other=0)
    position = tl.load(positions_ptr + at, mask=inside, other=0)
    state = _mixed(_mixed(seed + -7046029254386353131) + (position + 1) * -7046029254386353131)
    draw = ((state >> 11) & 0x1FFFFFFFFFFFFF).to(tl.float64) * 1.1102230246251565e-16  # 2^-53
    tl.store(out_ptr + at, draw, mask=inside)
