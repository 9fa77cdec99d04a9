"""The floor: nothing but a model's matrix products, attention and norms, of the shapes and lengths of the sweep."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F

from engine.gpu_check.device_timer import median_ms
from engine.gpu_check.floor_attention import FloorBatch, Work, fastest
from engine.gpu_check.floor_rate import chunks
from engine.gpu_check.session import Session, free_memory
from engine.gpu_check.sizes import torch_dtype
from engine.kernels.rms_norm import add_rms_norm
from engine.models.named_shapes import SHAPES
from engine.models.random_checkpoint import tiny_shape
from engine.models.shapes import LlamaShape


class FloorModel:
    """Random weights of a shape, in the products that an engine multiplies them in, and the same way round: qkv in one,
    gate and up in one. All of them torch's."""

    def __init__(self, shape: LlamaShape, dtype: torch.dtype, device: str) -> None:
        self.shape, self.dtype, self.device = shape, dtype, device
        self._heads = shape.num_heads * shape.head_dim
        wide = self._heads + 2 * shape.num_kv_heads * shape.head_dim
        hidden, inner = shape.hidden_size, shape.intermediate_size
        self._layers = [
            (
                self._weight(wide, hidden),
                self._weight(hidden, self._heads),
                self._weight(2 * inner, hidden),
                self._weight(hidden, inner).t().contiguous(),
            )
            for _ in range(shape.num_layers)
        ]
        self._head = self._weight(shape.vocab_size, hidden)
        self._norm = torch.ones(hidden, dtype=dtype, device=device)

    def _weight(self, rows: int, columns: int) -> torch.Tensor:
        return torch.randn(rows, columns, dtype=self.dtype, device=self.device).div_(columns**0.5)

    def one_pass(self, tokens: int, logit_rows: int, attend: Work) -> Callable[[], None]:
        """All layers over ``tokens`` rows, and the last norm and product over ``logit_rows``. Inputs are random and
        stay as they are: what a product gives is thrown away."""
        shape = self.shape

        def rows(size: int) -> torch.Tensor:
            return torch.randn(tokens, size, dtype=self.dtype, device=self.device)

        hidden, residual = rows(shape.hidden_size), rows(shape.hidden_size)
        attended, inner = rows(self._heads), rows(shape.intermediate_size)
        norm, eps = self._norm, shape.rms_norm_eps

        @torch.inference_mode()
        def run() -> None:
            for qkv, o, gate_up, down in self._layers:
                F.linear(add_rms_norm(hidden, residual, norm, eps), qkv)
                attend()
                F.linear(attended, o)
                F.linear(add_rms_norm(hidden, residual, norm, eps), gate_up)
                torch.mm(inner, down)  # this way round, as the engine
            F.linear(add_rms_norm(hidden[:logit_rows], residual[:logit_rows], norm, eps), self._head)

        return run


def step_ms(model: FloorModel, requests: int, width: int, length: int) -> dict[str, Any]:
    """A step of ``requests`` that each compute ``width`` tokens and see ``length`` keys."""
    attend, name = fastest(FloorBatch(model.shape, requests, width, length, model.dtype, model.device))
    tokens = requests * width
    return {"ms": round(median_ms(model.one_pass(tokens, tokens, attend), model.device), 4), "attention": name}


def prefill_ms(model: FloorModel, requests: int, prompt: int, chunk: int) -> dict[str, Any]:
    """All prompts, in chunks of at most ``chunk`` tokens, causal; one row of logits a request."""
    sizes = chunks(requests, prompt, chunk)
    took = {}
    for count in set(sizes):
        shape = model.shape
        q = torch.randn(count, shape.num_heads, prompt, shape.head_dim, dtype=model.dtype, device=model.device)
        kv = torch.randn(2, count, shape.num_kv_heads, prompt, shape.head_dim, dtype=model.dtype, device=model.device)

        def attend(q: torch.Tensor = q, kv: torch.Tensor = kv) -> object:
            return F.scaled_dot_product_attention(q, kv[0], kv[1], is_causal=True, enable_gqa=True)

        took[count] = median_ms(model.one_pass(count * prompt, count, attend), model.device, repeats=7)
    return {"ms": round(sum(took[count] for count in sizes), 4), "chunks": sizes, "attention": "sdpa"}


def run(session: Session) -> None:
    """Cells ``floor/prefill/CLIENTS`` and ``floor/step/CLIENTSxWIDTH``."""
    sizes = session.sizes
    length = sizes.prompt + sizes.output // 2  # the mean over a request's steps, of which the time is a linear function

    def model() -> FloorModel:
        make = partial(FloorModel, shape_of(sizes.model), torch_dtype(sizes.dtype), session.device)
        return session.keep("floor", make)

    def prefill(clients: int) -> dict[str, Any]:
        return prefill_ms(model(), clients, sizes.prompt, sizes.prefill_chunk)

    def step(clients: int, width: int) -> dict[str, Any]:
        return step_ms(model(), clients, width, length)

    for clients in sizes.clients:
        session.cell(f"floor/prefill/{clients}", partial(prefill, clients))
        for width in sizes.floor_widths:
            session.cell(f"floor/step/{clients}x{width}", partial(step, clients, width))
            free_memory(session.device)
    session.release("floor")


def shape_of(model: str) -> LlamaShape:
    """The shape behind a ``shape:`` name, or of the tiny built-in model."""
    return SHAPES[model].shape if model in SHAPES else tiny_shape()
