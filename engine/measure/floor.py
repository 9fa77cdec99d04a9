"""The floor of a plain step: nothing but the model's matrix products and dense attention of the same lengths."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from engine.models.linear import Arithmetic, Linear
from engine.models.shapes import LlamaShape


def make_floor(
    shape: LlamaShape, arithmetic: Arithmetic, lengths: Sequence[int], own_products: bool = False
) -> Callable[[], float]:
    """A call that runs the floor of one plain step once and returns its seconds.

    Random weights of the same shapes in the same dtype, multiplied as torch does by default, or with ``own_products``
    by the kernels that the engine uses (weights prepacked). Keys and values are dense, [requests, kv_heads, L, d],
    with L the mean of ``lengths``: as many keys are read as requests of these lengths have.
    """
    requests, context = len(lengths), round(sum(lengths) / len(lengths))
    dtype = arithmetic.activations
    q_size, kv_size = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim

    def linear(rows: int, cols: int) -> Callable[[torch.Tensor], torch.Tensor]:
        weight = torch.randn(rows, cols) / cols**0.5
        if own_products:
            return Linear(weight, arithmetic)
        dense = weight.to(dtype)
        return lambda x: F.linear(x, dense)

    layers = [
        (
            linear(q_size + 2 * kv_size, shape.hidden_size),
            linear(shape.hidden_size, q_size),
            linear(2 * shape.intermediate_size, shape.hidden_size),
            linear(shape.hidden_size, shape.intermediate_size),
            torch.randn(requests, shape.num_kv_heads, context, shape.head_dim, dtype=dtype),
            torch.randn(requests, shape.num_kv_heads, context, shape.head_dim, dtype=dtype),
        )
        for _ in range(shape.num_layers)
    ]
    head = linear(shape.vocab_size, shape.hidden_size)
    hidden = torch.randn(requests, shape.hidden_size, dtype=dtype)
    attended = torch.randn(requests, q_size, dtype=dtype)
    wide = torch.randn(requests, shape.intermediate_size, dtype=dtype)
    group = shape.num_heads // shape.num_kv_heads
    q = torch.randn(requests, shape.num_kv_heads, group, shape.head_dim, dtype=dtype)

    @torch.inference_mode()
    def run() -> float:
        began = time.perf_counter()
        for qkv, o, gate_up, down, k, v in layers:
            qkv(hidden)
            F.scaled_dot_product_attention(q, k, v)
            o(attended)
            gate_up(hidden)
            down(wide)
        head(hidden)
        return time.perf_counter() - began

    return run
