"""Comparing two runs of one model whose batch shapes differ: equal, but for near-ties of the reference.

float32 logits are not bit-equal across batch shapes. A first difference is excused only where the reference itself was
nearly undecided; it is printed, and the comparison goes on teacher-forced: behind the reference's own token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from engine.llm import Completion
from engine.sampling_params import SamplingParams

Generate = Callable[[list[list[int]], list[SamplingParams]], list[Completion]]
Margin = Callable[[int, int], float]
"""(which request, position in its output) -> how undecided the reference was there."""


@dataclass(frozen=True)
class Excuse:
    request: int
    position: int
    expected: int
    got: int
    margin: float


def top_two_gap(expected: Sequence[Completion]) -> Margin:
    """The gap of the reference's two likeliest tokens (a gap of log probabilities is one of logits)."""
    return lambda i, at: expected[i].logprobs[at].top[0] - expected[i].logprobs[at].top[1]


def differences(
    expected: Sequence[Completion], sampling: Sequence[SamplingParams], generate: Generate, margin: Margin, limit: float
) -> list[Excuse]:
    """Run what ``expected`` ran, and again behind each excused difference; the excuses.

    Raises:
        AssertionError: a difference where the reference was decided.
    """
    excuses: list[Excuse] = []
    pending = [(i, 0) for i in range(len(expected))]
    while pending:
        given = [expected[i].prompt_ids + expected[i].token_ids[:start] for i, start in pending]
        params = [
            msgspec.structs.replace(sampling[i], max_tokens=len(expected[i].token_ids) - start) for i, start in pending
        ]
        behind = []
        for (i, start), got in zip(pending, generate(given, params), strict=True):
            wanted = expected[i].token_ids[start:]
            if got.token_ids == wanted:
                continue
            at = next(k for k, (a, b) in enumerate(zip(wanted, got.token_ids, strict=True)) if a != b) + start
            excuse = Excuse(i, at, expected[i].token_ids[at], got.token_ids[at - start], margin(i, at))
            print(f"near-tie: {excuse}")
            assert excuse.margin < limit, f"not a near-tie (limit {limit}): {excuse}"
            excuses.append(excuse)
            if at + 1 < len(expected[i].token_ids):
                behind.append((i, at + 1))
        pending = behind
    return excuses
