"""The target model on a device: a flat batch of tokens over a slot-indexed pool, in the fewest launches.

A layer is norm, qkv, rotate-and-write, attention, o, norm, gate-up, silu-mul, down: nine kernels, or with many rows
eight (engine/kernels/gated_product.py). Each norm adds what the product before it gave to the residual stream, so
nothing else touches the stream. Rotation is in the checkpoint's half-split order, where the CPU's model
(engine/models/llama.py) interleaves: their K differ by that permutation.

The forward neither waits for the device nor takes a size from its data, so a CUDA graph can hold it.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

import torch
import torch.nn.functional as F

from engine.device.layer_parts import Attend, Mlp, rotations
from engine.device.pool import DevicePool
from engine.device.weights import Weights
from engine.kernels.rms_norm import add_rms_norm, rms_norm
from engine.kernels.rope import rope_and_write
from engine.models.shapes import LlamaShape


class _Layer:
    def __init__(self, weights: Weights, index: int, eps: float) -> None:
        layer, attn = f"layers.{index}", f"layers.{index}.self_attn"
        self.norm = weights.take(f"{layer}.input_layernorm.weight")
        self.qkv = weights.stack(f"{attn}.q_proj.weight", f"{attn}.k_proj.weight", f"{attn}.v_proj.weight")
        self.o = weights.take(f"{attn}.o_proj.weight")
        self.mlp = Mlp(weights, layer, eps)


class DeviceLlama:
    """Weights and forward of a Llama-architecture target."""

    def __init__(
        self,
        shape: LlamaShape,
        tensors: MutableMapping[str, torch.Tensor],
        dtype: torch.dtype,
        device: torch.device,
        max_model_len: int,
    ) -> None:
        """``tensors``: a checkpoint's, in its names; *emptied* as they go to the device. ``dtype``: of weights and
        activations; norms and rotations are computed in float32 (float64 in float64)."""
        self.shape = shape
        self.dtype = dtype
        self.device = device
        weights = Weights(tensors, dtype, device)
        self.embedding = weights.take("embed_tokens.weight")  # [vocab, hidden]
        self._layers = [_Layer(weights, index, shape.rms_norm_eps) for index in range(shape.num_layers)]
        self._norm = weights.take("norm.weight")
        self._lm_head = self.embedding if shape.tie_embeddings else weights.take("lm_head.weight")
        self._rotations = rotations(shape, max_model_len, dtype, device)
        self.parameters = weights.parameters

    def make_pool(self, slots: int, page_size: int) -> DevicePool:
        """``slots``: whole pages; one scrap page comes behind them."""
        shape = self.shape
        dims = (shape.num_layers, shape.num_kv_heads, slots, shape.head_dim)
        return DevicePool(*dims, self.dtype, self.device, scrap=page_size)

    def warm_up(self) -> None:
        """Have compiled what only many rows take; the layers are alike."""
        self._layers[0].mlp.warm_up()

    @torch.inference_mode()
    def forward(
        self,
        ids: torch.Tensor,
        positions: torch.Tensor,
        loc: torch.Tensor,
        attend: Attend,
        pool: DevicePool,
        logit_rows: torch.Tensor | None = None,
        aux_layers: Sequence[int] = (),
        aux_out: torch.Tensor | None = None,
        logits_out: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Run the target over N rows; K and V of every row go to the pool at ``loc``.

        ids, positions, loc: int64 [N]. logit_rows: int64 [M], the rows to compute logits for; None is all of them.
        aux_layers: boundaries whose entering residual stream is kept (EAGLE-3, arXiv 2503.01840, section 3.1), in this
        order into the columns of aux_out [N, n_aux * hidden], or of a new tensor. logits_out: [M, vocab].

        Returns:
            logits [M, vocab] in the activations' dtype, and aux, None without aux_layers.
        """
        shape, eps = self.shape, self.shape.rms_norm_eps
        residual = F.embedding(ids, self.embedding)  # [N, hidden]
        aux = aux_out
        if aux_layers and aux is None:
            aux = residual.new_empty(residual.shape[0], len(aux_layers) * shape.hidden_size)
        kept = aux.split(shape.hidden_size, dim=1) if aux is not None else ()
        x = rms_norm(residual, self._layers[0].norm, eps)
        for index, layer in enumerate(self._layers):
            if index:
                x = add_rms_norm(x, residual, layer.norm, eps)
            if index in aux_layers:
                _keep(index, residual, aux_layers, kept)
            qkv = F.linear(x, layer.qkv)  # [N, (heads + 2 * kv_heads) * head_dim]
            keys, values = pool.keys[index], pool.values[index]
            q = rope_and_write(qkv, self._rotations, positions, loc, keys, values, heads=shape.num_heads)
            attended = attend(index, q)  # [N, heads * head_dim]
            x = layer.mlp(F.linear(attended, layer.o), residual)
        x = add_rms_norm(x, residual, self._norm, eps)
        _keep(shape.num_layers, residual, aux_layers, kept)
        if logit_rows is not None:
            x = x[logit_rows]
        if logits_out is None:
            return F.linear(x, self._lm_head), aux if aux_layers else None
        return torch.mm(x, self._lm_head.t(), out=logits_out), aux if aux_layers else None


def _keep(boundary: int, residual: torch.Tensor, aux_layers: Sequence[int], kept: Sequence[torch.Tensor]) -> None:
    """Copy the stream that enters layer ``boundary`` to its columns. It is overwritten by the next norm."""
    for wanted, columns in zip(aux_layers, kept, strict=False):
        if wanted == boundary:
            columns.copy_(residual)
