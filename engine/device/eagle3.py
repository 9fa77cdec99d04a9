"""The EAGLE-3 draft head on a device (arXiv 2503.01840, section 3). What it computes: engine/models/eagle3.py.

K and V at a committed position depend only on the layer's input, so `write_kv` is all that keeps the draft's cache in
step: fc, two norms, one product of k and v.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.device.layer_parts import Attend, Mlp, rotations
from engine.device.pool import DevicePool
from engine.device.weights import Weights
from engine.kernels.pair_norm import pair_norm
from engine.kernels.rms_norm import add_rms_norm
from engine.kernels.rope import rope_and_write
from engine.models.shapes import Eagle3Shape


@dataclass(frozen=True)
class HeadInput:
    """What the layer reads at some positions."""

    pair: torch.Tensor  # [N, 2 * hidden]
    residual: torch.Tensor  # [N, hidden]


class DeviceHead:
    """Weights and forward of a head of one layer."""

    def __init__(
        self,
        shape: Eagle3Shape,
        tensors: MutableMapping[str, torch.Tensor],
        draft_to_target: torch.Tensor,
        target_embedding: torch.Tensor,
        dtype: torch.dtype,
        device: torch.device,
        max_model_len: int,
    ) -> None:
        """``tensors``: a head's checkpoint; *emptied* as they go to the device. ``target_embedding``: the target's
        table on the device, used where the head has none of its own. ``draft_to_target``: int64 [draft_vocab]."""
        self.shape = shape
        self.dtype = dtype
        self.device = device
        self.draft_to_target = draft_to_target.to(device)
        weights = Weights(tensors, dtype, device)
        layer, attn = "layers.0", "layers.0.self_attn"
        own = "embed_tokens.weight" in weights
        self._embedding = weights.take("embed_tokens.weight") if own else target_embedding
        self._fc = weights.take("fc.weight")
        self._qkv = weights.stack(f"{attn}.q_proj.weight", f"{attn}.k_proj.weight", f"{attn}.v_proj.weight")
        self._q, self._kv = self._qkv.split([shape.num_heads * shape.head_dim, 2 * shape.num_kv_heads * shape.head_dim])
        self._o = weights.take(f"{attn}.o_proj.weight")
        self._mlp = Mlp(weights, layer, shape.rms_norm_eps)
        self._input_norm = weights.take(f"{layer}.input_layernorm.weight")
        self._hidden_norm = weights.take(f"{layer}.hidden_norm.weight")
        self._norm = weights.take("norm.weight")
        self._lm_head = weights.take("lm_head.weight")  # [draft_vocab, hidden]
        self._rotations = rotations(shape, max_model_len, dtype, device)
        self.parameters = weights.parameters

    def make_pool(self, slots: int, page_size: int, scratch: int = 0) -> DevicePool:
        """``slots`` of whole pages, as the target's; ``scratch`` slots for tree nodes behind the scrap page."""
        shape = self.shape
        dims = (1, shape.num_kv_heads, slots, shape.head_dim)
        return DevicePool(*dims, self.dtype, self.device, scrap=page_size, scratch=scratch)

    def warm_up(self) -> None:
        """Have compiled what only many rows take."""
        self._mlp.warm_up()

    @torch.inference_mode()
    def fuse(self, aux: torch.Tensor) -> torch.Tensor:
        """The target's hidden states of some tokens, [N, n_aux * target hidden] -> g [N, hidden]."""
        return F.linear(aux, self._fc)

    @torch.inference_mode()
    def read(self, next_ids: torch.Tensor, g: torch.Tensor) -> HeadInput:
        """Layer input from the token *after* each position and its g. int64 [N], [N, hidden]."""
        shape = self.shape
        pair = pair_norm(next_ids, self._embedding, self._input_norm, g, self._hidden_norm, shape.rms_norm_eps)
        if shape.norm_before_residual:
            return HeadInput(pair, pair[:, shape.hidden_size :].clone())
        return HeadInput(pair, g)

    @torch.inference_mode()
    def write_kv(self, inputs: HeadInput, positions: torch.Tensor, loc: torch.Tensor, pool: DevicePool) -> None:
        """K and V of committed positions. positions, loc int64 [N]."""
        kv = F.linear(inputs.pair, self._kv)
        rope_and_write(kv, self._rotations, positions, loc, pool.keys[0], pool.values[0], heads=0)

    @torch.inference_mode()
    def forward(
        self,
        inputs: HeadInput,
        positions: torch.Tensor,
        loc: torch.Tensor | None,
        attend: Attend,
        pool: DevicePool,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The layer at N positions. ``loc`` int64 [N]: K and V of these rows are written there first; None: they are
        written already. **Overwrites** ``inputs.residual``, and with it the g that `read` was given where that is the
        residual: it becomes the returned hidden.

        Returns:
            logits [N, draft_vocab] in the activations' dtype, and the pre-norm hidden [N, hidden], g of the children.
        """
        shape, residual = self.shape, inputs.residual
        keys, values = pool.keys[0], pool.values[0]
        if loc is None:
            loc, keys, values = positions, keys[:, :0], values[:, :0]  # no heads to write: where is never read
            projected = F.linear(inputs.pair, self._q)
        else:
            projected = F.linear(inputs.pair, self._qkv)
        q = rope_and_write(projected, self._rotations, positions, loc, keys, values, heads=shape.num_heads)
        x = self._mlp(F.linear(attend(0, q), self._o), residual)
        x = add_rms_norm(x, residual, self._norm, shape.rms_norm_eps)
        return F.linear(x, self._lm_head), residual
