"""What the modes of one level come to against each other, by pairs of runs of the same round. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from probes.ratio import LEAST_PAIRS, WIDEST, Ratio, bootstrap
from workbench.bench.metrics import Run

BAR = 0.95
"""``auto`` should reach this share of the better fixed setting."""


@dataclass(frozen=True)
class Comparison:
    """Output throughput of one mode over that of another."""

    numerator: str
    denominator: str
    ratio: Ratio
    is_better: bool = False
    """The denominator was chosen as the better of off and on, by the median of its rounds."""

    @property
    def is_resolved(self) -> bool:
        """Where a bar is judged, whether it was; else whether the interval is narrow."""
        if self.is_better:
            return not self.verdict.startswith("not resolved")
        return self.ratio.pairs >= LEAST_PAIRS and self.ratio.width <= WIDEST

    @property
    def text(self) -> str:
        """``auto / off (the better one): 0.981 [0.964, 0.997] of 7 pairs, at least 0.95: reached``."""
        chosen = " (the better one)" if self.is_better else ""
        words = f"{self.numerator} / {self.denominator}{chosen}: {self.ratio}"
        if self.is_better:
            words += f", at least {BAR:g}: {self.verdict}"
        elif not self.is_resolved:
            words += "; not resolved"
        return words

    @property
    def verdict(self) -> str:
        """Whether the bar is reached; with too few pairs that is not said."""
        if self.ratio.pairs < LEAST_PAIRS:
            return f"not resolved (fewer than {LEAST_PAIRS} pairs)"
        return self.ratio.at_least(BAR)

    def as_json(self) -> dict[str, object]:
        return {
            "numerator": self.numerator,
            "denominator": self.denominator,
            "denominator_is_the_better": self.is_better,
            "median": self.ratio.median,
            "low": self.ratio.low,
            "high": self.ratio.high,
            "pairs": self.ratio.pairs,
            "resolved": self.is_resolved,
        }


def compare(runs: Mapping[str, Sequence[Run]]) -> list[Comparison]:
    """Of one level: mode -> its whole runs by round. on / off, and auto over the better of the two."""
    found: list[Comparison] = []
    rates = {mode: [run.output_throughput for run in done] for mode, done in runs.items()}
    if (ratio := _ratio(rates, "on", "off")) is not None:
        found.append(Comparison("on", "off", ratio))
    fixed = [mode for mode in ("off", "on") if rates.get(mode)]
    if fixed:
        better = max(fixed, key=lambda mode: statistics.median(rates[mode]))
        if (ratio := _ratio(rates, "auto", better)) is not None:
            found.append(Comparison("auto", better, ratio, is_better=len(fixed) == 2))
    return found


def _ratio(rates: Mapping[str, Sequence[float]], over: str, under: str) -> Ratio | None:
    pairs = [a / b for a, b in zip(rates.get(over, ()), rates.get(under, ()), strict=False) if b > 0]
    return bootstrap(pairs) if pairs else None
