"""Rotary position embedding (RoFormer, arXiv 2104.09864) as one complex product.

Heads are kept with the two halves of a pair side by side (x0, y0, x1, y1, ...), so that a pair is a complex number and
rotating is one multiplication in place. Checkpoints in the half-split order of Hugging Face are permuted at load; the
dot products of queries and keys do not change when both are permuted alike.
"""

from __future__ import annotations

import math
from typing import Any

import torch


class RopeError(ValueError):
    """A rope_scaling that is not supported."""


def interleave_rows(weight: torch.Tensor, head_dim: int) -> torch.Tensor:
    """Half-split rows of a q or k projection [heads * head_dim, in] -> pairs side by side."""
    rows, cols = weight.shape
    return weight.view(rows // head_dim, 2, head_dim // 2, cols).transpose(1, 2).reshape(rows, cols)


def rotation_table(
    head_dim: int, positions: int, theta: float, scaling: dict[str, Any] | None, dtype: torch.dtype
) -> torch.Tensor:
    """e^(i * position * frequency), complex [positions, head_dim / 2].

    Raises:
        RopeError: a scaling other than linear and llama3.
    """
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    freqs = theta**-exponents
    kind = (scaling or {}).get("rope_type", (scaling or {}).get("type", "default"))
    if scaling is not None and kind == "linear":
        freqs = freqs / float(scaling["factor"])
    elif scaling is not None and kind == "llama3":
        freqs = _llama3(freqs, scaling)
    elif kind != "default":
        raise RopeError(f"rope_scaling {kind!r} is not supported; supported: default, linear, llama3")
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * freqs
    table = torch.polar(torch.ones_like(angles), angles)
    return table if dtype == torch.float64 else table.to(torch.complex64)


def _llama3(freqs: torch.Tensor, scaling: dict[str, Any]) -> torch.Tensor:
    """Llama 3.1's smooth interpolation between kept high and divided low frequencies (its reference code)."""
    factor = float(scaling["factor"])
    low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
    original = float(scaling["original_max_position_embeddings"])
    wavelengths = 2 * math.pi / freqs
    smooth = ((original / wavelengths - low) / (high - low)).clamp(0, 1)
    return (1 - smooth) * freqs / factor + smooth * freqs


def rotate(heads: torch.Tensor, rotation: torch.Tensor) -> None:
    """Rotate in place. heads [N, H, head_dim], rows of one memory block; rotation complex [N, 1, head_dim / 2]."""
    n, count, dim = heads.shape
    if heads.dtype in (torch.float32, torch.float64):
        torch.view_as_complex(heads.view(n, count, dim // 2, 2)).mul_(rotation)
    else:
        wide = torch.view_as_complex(heads.float().view(n, count, dim // 2, 2)) * rotation
        heads.copy_(torch.view_as_real(wide).view(n, count, dim))
