"""The run stage for decode requests: one token each, or the tree of each, through the target, and what it would say."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.attention.backend import VerifyBatch
from engine.device.buffers import WidthBuffers
from engine.device.layer_parts import Attend
from engine.device.parts import Parts, verifying
from engine.kernels.argmax import greedy
from engine.kernels.upcoming import upcoming


@dataclass(frozen=True)
class FlatRows:
    """What the target's forward takes of some requests, their tokens one behind the other."""

    ids: torch.Tensor  # int64 [N]
    positions: torch.Tensor  # int64 [N]
    loc: torch.Tensor  # int64 [N], slots
    attend: Attend


def decode_rows(parts: Parts, buffers: WidthBuffers, batch: int, bound: int) -> FlatRows:
    """Of the first ``batch`` requests of ``buffers``, whose rows (and trees) stand there; slots come to stand there.

    ``bound``: on the committed length of any request.
    """
    state, width, trees = parts.state, buffers.width, buffers.trees
    rows = buffers.rows[:batch]
    loc = buffers.loc[:batch]
    if trees is None:
        ids, depths, masks = state.tokens[rows], None, None
    else:
        ids, depths, masks = trees.tokens[:batch].view(-1), trees.depths[:batch], trees.masks[:batch]
    positions = upcoming(rows, state.lens, state.pages, state.page_size, depths, loc)  # [B, width]
    attention = VerifyBatch(
        rows=rows,
        width=width,
        pages=state.pages,
        lens=state.lens,
        page_size=state.page_size,
        tail_loc=loc,
        tail_mask=masks,
        bound=bound + width,
    )
    return FlatRows(ids, positions.view(-1), loc.view(-1), verifying(parts.attention, parts.pool, attention))


def run_target(parts: Parts, buffers: WidthBuffers, batch: int, bound: int) -> None:
    """The forward over the first ``batch`` requests: logits, hidden states and the likeliest token at each node, in
    ``buffers``."""
    flat = decode_rows(parts, buffers, batch, bound)
    logits, _ = parts.model.forward(
        flat.ids,
        flat.positions,
        flat.loc,
        flat.attend,
        parts.pool,
        aux_layers=parts.aux_layers,
        aux_out=None if buffers.aux is None else buffers.aux[: batch * buffers.width],
        logits_out=buffers.logits[: batch * buffers.width],
    )
    buffers.drawn[:batch].copy_(greedy(logits).view(batch, buffers.width))


def positions_of_draws(parts: Parts, buffers: WidthBuffers, batch: int) -> torch.Tensor:
    """Absolute position of the token drawn at each node, int64 [B, width]: one past the node's own."""
    rows = buffers.rows[:batch]
    behind = parts.state.following(rows, 1) + 1
    return behind if buffers.trees is None else behind + buffers.trees.depths[:batch]
