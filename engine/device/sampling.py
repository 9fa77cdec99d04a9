"""Sampled requests: the draws of engine/sampler.py, in float64, on tensors that never leave the device.

A greedy step's draws are part of the run stage's graph. Where requests sample, theirs are drawn over it between run and
accept, kernel by kernel, and nobody else's are touched. The token is drawn at every node of a tree, for which nodes the
walk comes by is not known to the host; keyed draws make the walk's own the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.device.buffers import WidthBuffers
from engine.device.parts import Parts
from engine.device.state import DeviceState
from engine.device.target import positions_of_draws
from engine.kernels.keyed import keyed_uniform
from engine.sampler import COLDEST, inverse_cdf
from engine.sampling_params import SamplingParams

MOST_NUMBERS = 1 << 25
"""Probabilities worked on at a time: 268 MB of float64, and a sort of them takes three times that."""


@dataclass(frozen=True)
class Sampled:
    """Which requests of a batch sample."""

    places: torch.Tensor  # int64 [S], places in the batch
    is_filtered: bool  # one of them has top-k or top-p


def is_filtered(params: Sequence[SamplingParams]) -> bool:
    return any(p.top_k > 0 or p.top_p < 1.0 for p in params)


def probabilities(logits: torch.Tensor, state: DeviceState, rows: torch.Tensor, *, is_filtered: bool) -> torch.Tensor:
    """`engine.sampler.probabilities` with the parameters of the rows' requests, the same operations in the same order.

    logits [N, vocab], rows int64 [N] -> float64 [N, vocab], rows sum to 1. ``is_filtered``: sort for top-k and top-p;
    for a request that has neither, that changes nothing.
    """
    temperature = state.temperature[rows].clamp_min(COLDEST)
    probs = torch.softmax(logits.double() / temperature[:, None], dim=-1)
    if is_filtered:
        vocab = probs.shape[1]
        ordered = probs.sort(dim=-1, descending=True).values  # [N, vocab]
        top_k = state.top_k[rows].long()
        kth = torch.where(top_k > 0, top_k.clamp_max(vocab), vocab) - 1
        floor = ordered.gather(1, kth[:, None])  # smallest probability that top-k keeps
        probs = probs.where(probs >= floor, 0.0)
        ordered = ordered.where(ordered >= floor, 0.0)
        mass = ordered.sum(dim=-1, keepdim=True)
        before = ordered.cumsum(dim=-1) - ordered  # mass of the likelier tokens
        top_p = state.top_p[rows][:, None]
        inside = (before < top_p * mass) | (top_p >= 1.0)
        last = (inside.sum(dim=-1, keepdim=True) - 1).clamp_min_(0)  # top_p * mass can round to nothing
        probs = probs.where(probs >= ordered.gather(1, last), 0.0)
    min_p = state.min_p[rows][:, None]
    probs = probs.where(probs >= min_p * probs.amax(dim=-1, keepdim=True), 0.0)
    return probs / probs.sum(dim=-1, keepdim=True)


def draw(
    logits: torch.Tensor, state: DeviceState, rows: torch.Tensor, positions: torch.Tensor, *, is_filtered: bool
) -> torch.Tensor:
    """One token a row. logits [N, vocab], rows int64 [N], positions int64 [N] of the tokens drawn -> int64 [N]."""
    probs = probabilities(logits, state, rows, is_filtered=is_filtered)
    return inverse_cdf(probs, keyed_uniform(state.seeds[rows], positions))


def draw_sampled(parts: Parts, buffers: WidthBuffers, batch: int, sampled: Sampled) -> None:
    """Draw over ``buffers.drawn`` for the requests that sample, from their logits at every node."""
    width, vocab = buffers.width, buffers.logits.shape[1]
    logits = buffers.logits[: batch * width].view(batch, width, vocab)
    positions = positions_of_draws(parts, buffers, batch)  # [B, width]
    for places in sampled.places.split(max(1, MOST_NUMBERS // (width * vocab))):
        rows = buffers.rows[places].repeat_interleave(width)
        drawn = draw(
            logits[places].view(-1, vocab),
            parts.state,
            rows,
            positions[places].view(-1),
            is_filtered=sampled.is_filtered,
        )
        buffers.drawn.index_copy_(0, places, drawn.view(-1, width))
