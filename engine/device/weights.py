"""Weights on their way from a checkpoint to the device, and what of a decoder layer target and head have alike."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

import torch
import torch.nn.functional as F

from engine.kernels.rms_norm import add_rms_norm
from engine.kernels.rope import rope_table
from engine.kernels.silu import silu_mul
from engine.models.llama import ROPE_MARGIN
from engine.models.shapes import Eagle3Shape, LlamaShape

Attend = Callable[[int, torch.Tensor], torch.Tensor]
"""(layer, q [N, heads, head_dim]) -> [N, heads * head_dim]: attention of one step's rows, whose K and V of that layer
are written already. A closure over a backend, its batch, and the pool."""


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


class Mlp:
    """Norm and gated SiLU MLP on a residual stream: 4 launches."""

    def __init__(self, weights: Weights, layer: str, eps: float) -> None:
        self._norm = weights.take(f"{layer}.post_attention_layernorm.weight")
        self._gate_up = weights.stack(f"{layer}.mlp.gate_proj.weight", f"{layer}.mlp.up_proj.weight")
        self._down = weights.take(f"{layer}.mlp.down_proj.weight")
        self._eps = eps

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Adds x to the residual in place; what the MLP makes of their sum is *not* added yet: the next norm does.

        x, residual [N, hidden] -> [N, hidden]
        """
        normed = add_rms_norm(x, residual, self._norm, self._eps)
        gate_up = F.linear(normed, self._gate_up)  # [N, 2 * intermediate]
        return F.linear(silu_mul(gate_up), self._down)


def rotations(
    shape: LlamaShape | Eagle3Shape, max_model_len: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """cos and sin of every position, [positions, head_dim]: the first halves cosines. float32; float64 in float64."""
    wide = torch.promote_types(dtype, torch.float32)
    positions = max_model_len + ROPE_MARGIN
    return rope_table(shape.head_dim, positions, shape.rope_theta, shape.rope_scaling, device, wide)
