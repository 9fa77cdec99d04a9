"""First calls of kernels that neither a graph nor the first prompt makes, so that Triton compiles none while people are
served: the MLP's product for many rows, prompts of other lengths, draws."""

from __future__ import annotations

import torch

from engine.attention.backend import ExtendBatch
from engine.device.parts import Parts
from engine.kernels.attention_tiles import chunks_of_every_tile
from engine.kernels.keyed import keyed_uniform


def call_first(parts: Parts) -> None:
    """One call each. Nothing is written but what padding may overwrite, and nothing is waited for."""
    parts.model.warm_up()
    if parts.draft is not None:
        parts.draft.head.warm_up()
    _extend(parts)
    zero = torch.zeros(1, dtype=torch.int64, device=parts.model.device)
    keyed_uniform(zero, zero)


def _extend(parts: Parts) -> None:
    """A chunk of one token, of the row that pads, as if a longer one were in the batch."""
    state, pool, shape, device = parts.state, parts.pool, parts.model.shape, parts.model.device
    q = torch.zeros(1, shape.num_heads, shape.head_dim, dtype=parts.model.dtype, device=device)
    for longest in chunks_of_every_tile(shape.num_heads // shape.num_kv_heads):
        batch = ExtendBatch(
            rows=torch.tensor([state.pad_row], device=device),
            starts=torch.zeros(1, dtype=torch.int32, device=device),
            cu_q=torch.tensor([0, 1], dtype=torch.int32, device=device),
            max_q=longest,
            pages=state.pages,
            page_size=state.page_size,
            host_pages=[[pool.scrap_page]],
            host_lengths=[1],
            host_q=[1],
        )
        parts.attention.extend(q, pool.keys[0], pool.values[0], batch)
