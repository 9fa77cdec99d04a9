"""Weights on their way from a checkpoint to the device, in the order that products read them."""

from __future__ import annotations

from collections.abc import MutableMapping

import torch


class Weights:
    """Takes tensors out of a checkpoint, one product's at a time: each is dropped there as soon as it is on the device,
    so that a model never needs its memory twice."""

    def __init__(self, tensors: MutableMapping[str, torch.Tensor], dtype: torch.dtype, device: torch.device) -> None:
        self.parameters = 0  # taken so far
        self._tensors = tensors
        self._dtype = dtype
        self._device = device

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str) -> torch.Tensor:
        """One tensor, contiguous, on the device; gone from the checkpoint."""
        tensor = self._tensors.pop(name)
        self.parameters += tensor.numel()
        return tensor.to(self._device, self._dtype).contiguous()

    def take_transposed(self, name: str) -> torch.Tensor:
        """One matrix [rows, in] as [in, rows], contiguous, as `torch.mm` takes it on its right. Until this ends the
        matrix is there twice."""
        return self.take(name).t().contiguous()

    def pair(self, first: str, second: str, together: int) -> torch.Tensor:
        """Two matrices [rows, in] as one: ``together`` rows of the first, as many of the second, and so on in turn.

        Raises:
            ValueError: their shapes differ, or their rows are no multiple of ``together``.
        """
        one, other = (self._tensors.pop(name) for name in (first, second))
        if one.shape != other.shape or one.shape[0] % together:
            shapes = f"{list(one.shape)} and {list(other.shape)}"
            raise ValueError(f"{first} and {second}: shapes {shapes}, expected the same, of {together} rows at a time")
        self.parameters += one.numel() + other.numel()
        rows, columns = one.shape
        whole = torch.empty(rows // together, 2, together, columns, dtype=self._dtype, device=self._device)
        for index, piece in enumerate((one, other)):
            whole[:, index].copy_(piece.unflatten(0, (-1, together)))
        return whole.view(2 * rows, columns)

    def stack(self, *names: str) -> torch.Tensor:
        """Several matrices [rows, in] as one, in this order: what reads the same input is one product.

        Every piece is copied to its place: the whole never exists in two copies.
        """
        pieces = [self._tensors.pop(name) for name in names]
        self.parameters += sum(piece.numel() for piece in pieces)
        rows, (_, columns) = sum(piece.shape[0] for piece in pieces), pieces[0].shape
        whole = torch.empty(rows, columns, dtype=self._dtype, device=self._device)
        for target, piece in zip(whole.split([piece.shape[0] for piece in pieces]), pieces, strict=True):
            target.copy_(piece)
        return whole
