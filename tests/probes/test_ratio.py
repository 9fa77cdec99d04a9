"""Ratios of interleaved pairs: right medians, honest intervals, verdicts in words."""

from __future__ import annotations

import pytest

from probes.ratio import Ratio, bootstrap, interleaved


def test_pairs_alternate_and_each_ratio_is_of_one_pair() -> None:
    order: list[str] = []

    def side(name: str, value: float) -> float:
        order.append(name)
        return value

    ratio = interleaved(lambda: side("a", 3.0), lambda: side("b", 2.0), pairs=4)
    assert order == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert ratio == Ratio(1.5, 1.5, 1.5, 4)


def test_the_interval_holds_the_median_and_narrows_with_agreement() -> None:
    wide = bootstrap([0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 0.7])
    assert wide.median == 1.0
    assert 0.7 <= wide.low < 1.0 < wide.high <= 1.3
    assert bootstrap([0.99, 1.0, 1.01] * 3).width < wide.width
    assert bootstrap([0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 0.7]) == wide  # the same numbers, the same interval


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(0.97, 0.95, 0.98, 7), "reached"),
        (Ratio(0.90, 0.88, 0.92, 7), "missed"),
        (Ratio(0.95, 0.90, 1.00, 7), "not resolved (interval too wide)"),
        (Ratio(1.10, 0.95, 1.20, 7), "reached"),  # wide, and wholly beyond the bar
        (Ratio(0.85, 0.80, 0.94, 7), "missed"),
    ],
)
def test_a_bar_is_reached_missed_or_not_resolved(ratio: Ratio, verdict: str) -> None:
    assert ratio.at_least(0.95) == verdict


def test_a_limit_is_a_bar_from_above() -> None:
    assert Ratio(1.1, 1.0, 1.25, 7).at_most(1.25) == "reached"
    assert Ratio(1.2, 1.1, 1.3, 7).at_most(1.25) == "not resolved (interval too wide)"
    assert Ratio(1.27, 1.24, 1.28, 7).at_most(1.25) == "reached"
    assert Ratio(1.4, 1.3, 1.5, 7).at_most(1.25) == "missed"
