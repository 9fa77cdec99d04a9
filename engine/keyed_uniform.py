"""Uniform draws that depend on nothing but a request's seed and a token's absolute position.

The token at a position is then the same whether it is drawn by a plain step, at a node of a verify tree, or in a
re-run. The generator is SplitMix64's finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
OOPSLA 2014), used as a hash of the pair.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def keyed_uniform(seeds: npt.ArrayLike, positions: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """One draw in [0, 1) for each pair, float64 [N]. Seeds are taken modulo 2^64."""
    seed = np.atleast_1d(np.asarray(seeds, dtype=np.uint64))
    position = np.atleast_1d(np.asarray(positions, dtype=np.uint64))
    with np.errstate(over="ignore"):
        state = _mix(_mix(seed + _GOLDEN) + (position + np.uint64(1)) * _GOLDEN)
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53
