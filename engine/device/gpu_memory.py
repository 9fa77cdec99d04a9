"""How much of a GPU's memory is taken, and how much could be."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class GpuMemory:
    """Of one device, in bytes, at one moment."""

    total: int
    taken: int
    """By what stands already: CUDA's context, other programs, this one's tensors."""

    @classmethod
    def of(cls, device: torch.device) -> GpuMemory:
        """As it is now. What torch's allocator only keeps for later is free to us."""
        free, total = torch.cuda.mem_get_info(device)
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return cls(total, total - free - kept)

    @property
    def free(self) -> int:
        """What could still be taken."""
        return self.total - self.taken
