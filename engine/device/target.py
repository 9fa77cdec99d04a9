"""The run stage for decode requests: one token each, or the tree of each, through the target, and what it would say."""

from __future__ import annotations

import torch

from engine.attention.backend import VerifyBatch
from engine.device.buffers import WidthBuffers
from engine.device.parts import Parts, verifying
from engine.kernels.argmax import greedy


def run_target(parts: Parts, buffers: WidthBuffers, batch: int, bound: int) -> None:
    """The forward over the first ``batch`` rows of ``buffers``, whose rows (and trees) stand there.

    Gives slots, logits, hidden states and the likeliest token at each node, in ``buffers``. ``bound``: on the
    committed length of any request.
    """
    state, width, trees = parts.state, buffers.width, buffers.trees
    rows = buffers.rows[:batch]
    following = state.following(rows, width)  # positions of the slots, [B, width]
    loc = state.slots(rows, following)
    buffers.loc[:batch].copy_(loc)
    if trees is None:
        ids, positions, masks = state.tokens[rows], following, None
    else:
        ids, masks = trees.tokens[:batch].reshape(-1), trees.masks[:batch]
        positions = following[:, :1] + trees.depths[:batch]  # node n has slot n, and the position of its depth
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
    logits, _ = parts.model.forward(
        ids,
        positions.reshape(-1),
        loc.reshape(-1),
        verifying(parts.attention, parts.pool, attention),
        parts.pool,
        aux_layers=parts.aux_layers,
        aux_out=None if buffers.aux is None else buffers.aux[: batch * width],
        logits_out=buffers.logits[: batch * width],
    )
    buffers.drawn[:batch].copy_(greedy(logits).view(batch, width))


def positions_of_draws(parts: Parts, buffers: WidthBuffers, batch: int) -> torch.Tensor:
    """Absolute position of the token drawn at each node, int64 [B, width]: one past the node's own."""
    rows = buffers.rows[:batch]
    behind = parts.state.following(rows, 1) + 1
    return behind if buffers.trees is None else behind + buffers.trees.depths[:batch]
