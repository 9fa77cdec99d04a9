"""The tensors that hold keys and values."""

from __future__ import annotations

import numpy as np
import torch


def lazy_zeros(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Zeros that take memory only where they are written: torch would touch every page at the start."""
    bits = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    return torch.from_numpy(np.zeros(shape, dtype=bits)).view(dtype)


class KvPool:
    """Keys and values of all layers, indexed by slot.

    ``data`` is [layers, 2 * kv_heads, slots, head_dim]: the keys' heads, then the values'. Head-major, so that a
    contiguous range of slots is a dense view for attention. Zeroed once: padding that attention masks out is then
    finite, and 0 x finite stays 0.
    """

    def __init__(self, layers: int, kv_heads: int, slots: int, head_dim: int, dtype: torch.dtype) -> None:
        self.kv_heads = kv_heads
        self.data = lazy_zeros((layers, 2 * kv_heads, slots, head_dim), dtype)
        self._layers = self.data.unbind(0)
        self.written = 0  # rows written by layer 0, for slots_written

    def write(self, layer: int, loc: torch.Tensor, kv: torch.Tensor) -> None:
        """Write one layer's keys and values. loc int64 [N]; kv [N, 2 * kv_heads, head_dim]."""
        self._layers[layer].index_copy_(1, loc, kv.transpose(0, 1))
        if layer == 0:
            self.written += loc.numel()

    def take_written(self) -> int:
        """Rows written since the last call."""
        written, self.written = self.written, 0
        return written

    def move(self, source: torch.Tensor, target: torch.Tensor) -> None:
        """Copy slots to slots in all layers; the sets may overlap (all is read before anything is written)."""
        if source.numel():
            self.data.index_copy_(2, target, self.data.index_select(2, source))

    def read(self, layer: int, loc: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values at slots: two [kv_heads, N, head_dim]."""
        rows = self.data[layer].index_select(1, loc)
        return rows[: self.kv_heads], rows[self.kv_heads :]
