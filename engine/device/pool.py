"""Keys and values on the device, a slot's row contiguous, with slots beside the ledger's that no request ever owns."""

from __future__ import annotations

import torch

from engine.kv.pool import lazy_zeros


class DevicePool:
    """Keys and values of all layers, indexed by slot.

    ``k`` and ``v`` are [layers, slots, kv_heads, head_dim] each (NHD: what paged attention kernels read). Slots, in
    order: the ledger's, one scrap page for the rows that only pad a batch (``scrap_page`` is its number), then scratch
    slots (``scratch_base`` is the first) for keys and values that live for one step: nodes of a draft tree.

    Zeroed once: what attention masks out is then finite, and 0 x finite stays 0.
    """

    def __init__(
        self,
        layers: int,
        kv_heads: int,
        slots: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
        *,
        scrap: int,
        scratch: int = 0,
    ) -> None:
        """``scrap``: slots of the scrap page, the page size.

        Raises:
            ValueError: ``slots`` are no whole number of pages.
        """
        if slots % scrap:
            raise ValueError(f"a pool of {slots} slots is no whole number of pages of {scrap}")
        self.scrap_page = slots // scrap
        self.scratch_base = slots + scrap
        dims = (layers, slots + scrap + scratch, kv_heads, head_dim)
        self.k = _zeros(dims, dtype, device)
        self.v = _zeros(dims, dtype, device)
        # Views made once: an index is a call to torch, and a step makes one a layer.
        self.keys = self.k.unbind(0)  # a layer's [slots, kv_heads, head_dim]
        self.values = self.v.unbind(0)

    @property
    def bytes(self) -> int:
        """Memory of the whole pool, scrap and scratch included."""
        return self.k.nbytes + self.v.nbytes


def _zeros(dims: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    return lazy_zeros(dims, dtype) if device.type == "cpu" else torch.zeros(dims, dtype=dtype, device=device)
