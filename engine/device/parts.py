"""What every part of a step works on: the models, their pools, the rows' state, attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.attention.backend import AttentionBackend, ExtendBatch, VerifyBatch
from engine.device.eagle3 import DeviceHead
from engine.device.layer_parts import Attend
from engine.device.llama import DeviceLlama
from engine.device.pool import DevicePool
from engine.device.state import RING_ROWS, DeviceState


@dataclass(frozen=True)
class Draft:
    """The draft head and its pool. Positions have the target's slots; tree nodes live in scratch slots behind them."""

    head: DeviceHead
    pool: DevicePool
    attention: AttentionBackend
    scratch: torch.Tensor  # int64 [M, RING_ROWS]: slots for the nodes of each row of a batch

    @classmethod
    def make(cls, head: DeviceHead, attention: AttentionBackend, slots: int, page_size: int, batch: int) -> Draft:
        """``slots``: the ledger's; ``batch``: the largest."""
        pool = head.make_pool(slots, page_size, scratch=batch * RING_ROWS)
        nodes = torch.arange(batch * RING_ROWS, dtype=torch.int64, device=head.device).view(batch, RING_ROWS)
        return cls(head, pool, attention, nodes + pool.scratch_base)

    @property
    def aux_layers(self) -> tuple[int, ...]:
        return self.head.shape.aux_layers

    @property
    def row_bytes(self) -> int:
        """Memory of the hidden states of one token."""
        return len(self.aux_layers) * self.head.shape.target_hidden_size * self.head.dtype.itemsize


@dataclass(frozen=True)
class Parts:
    """Made once, at the start."""

    model: DeviceLlama
    pool: DevicePool
    attention: AttentionBackend
    state: DeviceState
    draft: Draft | None
    simulate_accept: float | None = None

    @property
    def aux_layers(self) -> tuple[int, ...]:
        return self.draft.aux_layers if self.draft is not None else ()


def verifying(attention: AttentionBackend, pool: DevicePool, batch: VerifyBatch) -> Attend:
    """Attention of a decode, a verify or a draft's nodes."""
    return lambda layer, q: attention.verify(q, pool.keys[layer], pool.values[layer], batch)


def extending(attention: AttentionBackend, pool: DevicePool, batch: ExtendBatch) -> Attend:
    """Attention of prefill chunks."""
    return lambda layer, q: attention.extend(q, pool.keys[layer], pool.values[layer], batch)
