"""What the layers of target and head have alike on a device: MLP, rotations, and how attention is called."""

from __future__ import annotations

from collections.abc import Callable

import torch

from engine.device.weights import Weights
from engine.kernels.gated_product import fits_one_launch, gated_product, gates_together
from engine.kernels.rms_norm import add_rms_norm
from engine.kernels.rope import rope_table
from engine.models.llama import ROPE_MARGIN
from engine.models.shapes import Eagle3Shape, LlamaShape

Attend = Callable[[int, torch.Tensor], torch.Tensor]
"""(layer, q [N, heads, head_dim]) -> [N, heads * head_dim]: attention of one step's rows, whose K and V of that layer
are written already. A closure over a backend, its batch, and the pool."""


class Mlp:
    """Norm and gated SiLU MLP on a residual stream: 4 launches, 3 where `gated_product` takes one."""

    def __init__(self, weights: Weights, layer: str, eps: float) -> None:
        self._norm = weights.take(f"{layer}.post_attention_layernorm.weight")
        self._down = weights.take_transposed(f"{layer}.mlp.down_proj.weight")  # [inner, hidden], the faster way round
        together = gates_together(self._down.shape[0])
        self._gate_up = weights.pair(f"{layer}.mlp.gate_proj.weight", f"{layer}.mlp.up_proj.weight", together)
        self._eps = eps

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Adds x to the residual in place; what the MLP makes of their sum is *not* added yet: the next norm does.

        x, residual [N, hidden] -> [N, hidden]
        """
        normed = add_rms_norm(x, residual, self._norm, self._eps)
        return torch.mm(gated_product(normed, self._gate_up), self._down)

    def warm_up(self) -> None:
        """Have the launch compiled that only many rows take."""
        x = self._gate_up.new_zeros(1, self._gate_up.shape[1])
        if fits_one_launch(x, self._gate_up):
            gated_product(x, self._gate_up, in_one=True)


def rotations(
    shape: LlamaShape | Eagle3Shape, max_model_len: int, dtype: torch.dtype, device: torch.device
) -> torch.Tensor:
    """cos and sin of every position, [positions, head_dim]: the first halves cosines. float32; float64 in float64."""
    wide = torch.promote_types(dtype, torch.float32)
    positions = max_model_len + ROPE_MARGIN
    return rope_table(shape.head_dim, positions, shape.rope_theta, shape.rope_scaling, device, wide)
