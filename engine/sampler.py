"""Drawing one token from the target's distribution: the same code for plain steps and for tree nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from engine.ipc import TokenLogprobs
from engine.keyed_uniform import keyed_uniform
from engine.sampling_params import SamplingParams

ARGMAX_BLOCK = 256

COLDEST = 1e-290
"""Smallest temperature that logits are divided by: below it quotients overflow, and it is as good as zero already."""


def greedy(logits: torch.Tensor) -> torch.Tensor:
    """Likeliest token of each row, ties to the lowest id. [N, vocab] -> int64 [N].

    In two stages where the vocabulary divides: torch's argmax takes 5.7 ms for 48 rows of 49,152 on two cores, the
    maximum of each block 0.7. The first block that holds the maximum, and the first place in it, are the lowest id.
    """
    n, vocab = logits.shape
    if vocab % ARGMAX_BLOCK:
        return logits.argmax(dim=-1)
    blocks = logits.view(n, vocab // ARGMAX_BLOCK, ARGMAX_BLOCK)
    block = blocks.amax(dim=-1).argmax(dim=-1)
    return block * ARGMAX_BLOCK + blocks[torch.arange(n), block].argmax(dim=-1)


def probabilities(logits: torch.Tensor, params: Sequence[SamplingParams]) -> torch.Tensor:
    """The distribution each row is drawn from, after temperature, top-k, top-p and min-p, in this order.

    logits [N, vocab] -> float64 [N, vocab], rows sum to 1. Tokens that tie with the k-th or with the last token of the
    nucleus are kept or dropped together, so that the result does not depend on how a sort breaks ties.
    """
    temperature = torch.tensor([max(p.temperature, COLDEST) for p in params], dtype=torch.float64)
    probs = torch.softmax(logits.double() / temperature[:, None], dim=-1)
    top_k = [p.top_k for p in params]
    if any(top_k) or any(p.top_p < 1.0 for p in params):
        vocab = probs.shape[1]
        ordered = probs.sort(dim=-1, descending=True).values  # [N, vocab]
        kth = torch.tensor([min(k, vocab) if k else vocab for k in top_k]) - 1
        floor = ordered.gather(1, kth[:, None])  # smallest probability that top-k keeps
        probs = probs.where(probs >= floor, 0.0)
        ordered = ordered.where(ordered >= floor, 0.0)
        mass = ordered.sum(dim=-1, keepdim=True)
        before = ordered.cumsum(dim=-1) - ordered  # mass of the likelier tokens
        top_p = torch.tensor([p.top_p for p in params], dtype=torch.float64)[:, None]
        inside = (before < top_p * mass) | (top_p >= 1.0)
        last = (inside.sum(dim=-1, keepdim=True) - 1).clamp_min_(0)  # top_p * mass can round to nothing
        probs = probs.where(probs >= ordered.gather(1, last), 0.0)
    min_p = torch.tensor([p.min_p for p in params], dtype=torch.float64)[:, None]
    probs = probs.where(probs >= min_p * probs.amax(dim=-1, keepdim=True), 0.0)
    return probs / probs.sum(dim=-1, keepdim=True)


def inverse_cdf(probs: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
    """The token at which the cumulative distribution, in order of token id, first exceeds u.

    probs float64 [N, vocab], uniforms float64 [N] in [0, 1) -> int64 [N]. A token of probability zero is never drawn,
    not even with u = 0.
    """
    cdf = probs.cumsum(dim=-1)
    # scaled by the last value, so that rounding of the sum cannot put u beyond the end
    return (
        torch.searchsorted(cdf, (uniforms * cdf[:, -1])[:, None], right=True).squeeze(1).clamp_max_(probs.shape[1] - 1)
    )


def draw(
    logits: torch.Tensor, params: Sequence[SamplingParams], seeds: Sequence[int], positions: Sequence[int]
) -> torch.Tensor:
    """One token a row: greedy rows by argmax, the others by a keyed draw. [N, vocab] -> int64 [N].

    ``positions``: the absolute position of the token that is drawn.
    """
    tokens = greedy(logits)
    sampled = [i for i, p in enumerate(params) if not p.greedy]
    if sampled:
        rows = torch.tensor(sampled)
        uniforms = torch.from_numpy(
            keyed_uniform(
                np.array([seeds[i] % 2**64 for i in sampled], dtype=np.uint64), [positions[i] for i in sampled]
            )
        )
        probs = probabilities(logits[rows], [params[i] for i in sampled])
        tokens[rows] = inverse_cdf(probs, uniforms)
    return tokens


def report_logprobs(logits: torch.Tensor, tokens: Sequence[int], count: int) -> list[TokenLogprobs]:
    """Log probabilities of drawn tokens and of the ``count`` likeliest ones, from the model's own distribution.

    logits [N, vocab], one token a row.
    """
    logprobs = torch.log_softmax(logits.double(), dim=-1)
    chosen = logprobs[torch.arange(len(tokens)), torch.tensor(tokens)].tolist()
    if count == 0:
        return [TokenLogprobs(chosen=value) for value in chosen]
    top = logprobs.topk(count, dim=-1)
    return [
        TokenLogprobs(chosen=value, top_ids=ids, top=values)
        for value, ids, values in zip(chosen, top.indices.tolist(), top.values.tolist(), strict=True)
    ]
