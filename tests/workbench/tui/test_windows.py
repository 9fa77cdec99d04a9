"""Rates and accept length over a window."""

from __future__ import annotations

import pytest

from workbench.tui.windows import AcceptWindow, RateWindow


def test_rate_counts_tokens_not_steps() -> None:
    """B84: with speculation a step has several tokens; the rate is of tokens."""
    window = RateWindow(seconds=5)
    for number in range(51):
        window.add(number * 0.1, 3)
    assert window.rate(5.0) == pytest.approx(30, rel=0.03)


def test_rate_falls_to_zero_when_nothing_comes() -> None:
    window = RateWindow(seconds=5)
    window.add(0.0, 100)
    window.add(1.0, 100)
    assert window.rate(3.0) == pytest.approx(200 / 3)
    assert window.rate(60.0) == 0.0


def test_no_rate_before_anything_was_seen() -> None:
    window = RateWindow()
    assert window.rate(10.0) is None
    window.add(10.0, 5)
    assert window.rate(10.01) is None


def test_accept_is_a_ratio_of_sums_with_the_bonus() -> None:
    window = AcceptWindow(seconds=10)
    window.add(0.0, correct=0, verified=1)  # 1.0 at one request
    window.add(1.0, correct=18, verified=9)  # 3.0 at nine: the mean of means would be 2.0
    assert window.read(1.0).value == pytest.approx(1 + 18 / 10)


def test_hostile_and_oracle_draft() -> None:
    """B45: none accepted is 1, all of K accepted is K + 1."""
    hostile, oracle = AcceptWindow(), AcceptWindow()
    hostile.add(0.0, correct=0, verified=4)
    oracle.add(0.0, correct=20, verified=4)
    assert hostile.read(0.0).value == 1.0
    assert oracle.read(0.0).value == 6.0


def test_without_verifies_there_is_no_value_but_the_age_of_the_last() -> None:
    """B61: null with the age of the last value; never 0 and never a frozen number."""
    window = AcceptWindow(seconds=10)
    assert window.read(0.0).value is None
    assert window.read(0.0).last is None
    window.add(0.0, correct=3, verified=2)
    window.add(1.0, correct=0, verified=0)  # a plain step is no data
    now = window.read(61.0)
    assert now.value is None
    assert now.last == pytest.approx(2.5)
    assert now.age == pytest.approx(61.0)


def test_new_epoch_starts_the_window_again() -> None:
    window = AcceptWindow()
    window.add(0.0, correct=4, verified=2)
    window.new_epoch(1)
    assert window.read(0.5).value is None
    assert window.read(0.5).last == 3.0
    window.add(1.0, correct=0, verified=2, epoch=1)
    assert window.read(1.0).value == 1.0


def test_a_step_that_flew_when_the_knobs_changed_counts_with_those_before() -> None:
    window = AcceptWindow()
    window.add(0.0, correct=4, verified=2)
    window.new_epoch(1)
    window.add(0.5, correct=1, verified=3, epoch=0)
    assert window.read(0.5).value is None
    assert window.read(0.5).last == 2.0
    window.add(1.0, correct=0, verified=2, epoch=1)
    assert window.read(1.0).value == 1.0
