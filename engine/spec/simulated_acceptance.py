"""Acceptance by prescription: how many nodes of a tree a verify keeps, whatever was drawn.

For benchmarks of random weights, whose drafts are never right. Every verify does all of its work; only the outcome of
the comparison is replaced, by a draw that depends on nothing but the request's seed and the position, so that both
workers and a re-run keep the same nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from engine.keyed_uniform import keyed_uniform


def forced_lengths(accept_length: float, seeds: Sequence[int], positions: Sequence[int]) -> list[int]:
    """Nodes that each request keeps, the root included: ``accept_length`` on average.

    Args:
        accept_length: emitted tokens a verify, the target's own included; at least 1.
        seeds: of the requests, taken modulo 2^64.
        positions: of each request's newest token, the root of its tree.
    """
    whole, part = math.floor(accept_length), accept_length % 1.0
    uniforms = keyed_uniform(np.array([seed % 2**64 for seed in seeds], dtype=np.uint64), positions)
    return [max(1, whole + int(uniform < part)) for uniform in uniforms]
