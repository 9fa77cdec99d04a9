"""Comparing two ways of doing one thing on a machine that is never quiet: alternate, take ratios, show their spread."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEAST_PAIRS = 7
WIDEST = 0.05
"""An interval that a bar lies within does not resolve it when it is wider than this."""


@dataclass(frozen=True)
class Ratio:
    """Median of the pairs' ratios and its bootstrap 90% interval."""

    median: float
    low: float
    high: float
    pairs: int

    @property
    def width(self) -> float:
        return self.high - self.low

    def at_least(self, bar: float) -> str:
        """The verdict in words."""
        return self._verdict(self.high >= bar, self.low >= bar)

    def at_most(self, bar: float) -> str:
        """The verdict in words."""
        return self._verdict(self.low <= bar, self.high <= bar)

    def _verdict(self, touches: bool, lies_beyond: bool) -> str:
        """``touches``: the interval's better end reaches the bar. ``lies_beyond``: its worse end does too, and then its
        width leaves nothing open."""
        if not touches:
            return "missed"
        return "reached" if lies_beyond or self.width <= WIDEST else "not resolved (interval too wide)"

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}] of {self.pairs} pairs"


def bootstrap(ratios: Sequence[float], seed: int = 0, draws: int = 2000) -> Ratio:
    """Median with a percentile-bootstrap 90% interval (Efron 1979)."""
    rng = random.Random(seed)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(draws))
    return Ratio(statistics.median(ratios), medians[int(draws * 0.05)], medians[int(draws * 0.95) - 1], len(ratios))


def interleaved(first: Callable[[], float], second: Callable[[], float], pairs: int = LEAST_PAIRS) -> Ratio:
    """first / second, pair by pair, in alternating order. Each call returns its own figure (seconds, tokens/s, ...)."""
    ratios = []
    for i in range(pairs):
        if i % 2:
            b, a = second(), first()
        else:
            a, b = first(), second()
        ratios.append(a / b)
    return bootstrap(ratios)
