"""NAME OP NUMBER, and what is said of anything else."""

from __future__ import annotations

import pytest

from probes.checks import METRICS, ExpectationError, Tally, judge, parse_expectation
from tests.workbench import made_events as made


@pytest.mark.parametrize(
    ("text", "read_as"),
    [
        ("accept_length > 1.8", "accept_length > 1.8"),
        ("accept_length>1.8", "accept_length > 1.8"),
        ("  gaps==0 ", "gaps == 0"),
        ("output_throughput >= 1e3", "output_throughput >= 1000"),
        ("steps != -1", "steps != -1"),
        ("ttft_ms_p50 <= .5", "ttft_ms_p50 <= 0.5"),
    ],
)
def test_forms(text: str, read_as: str) -> None:
    assert parse_expectation(text).text == read_as


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write NAME OP NUMBER"),
        ("accept_length", "write NAME OP NUMBER"),
        ("accept_length > ", "write NAME OP NUMBER"),
        ("1.8 < accept_length", "write NAME OP NUMBER"),
        ("accept_length > 1.8 and gaps == 0", "write NAME OP NUMBER"),
        ("gaps = 0", "equality is =="),
        ("gaps => 0", "'=>' is no comparison"),
        ("gaps == none", "'none' is not a number"),
        ("gaps == nan", "'nan' is not a number"),
        ("ttft_ms_p50 < 200ms", "write it plain (in ms)"),
        ("accept_lenght > 1", "did you mean accept_length?"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(ExpectationError) as caught:
        parse_expectation(text)
    assert said in str(caught.value)


def test_an_unknown_name_is_answered_with_all_names_and_their_meanings() -> None:
    with pytest.raises(ExpectationError) as caught:
        parse_expectation("speed > 1")
    for metric in METRICS.values():
        assert metric.name in str(caught.value)
        assert metric.meaning in str(caught.value)


@pytest.mark.parametrize(
    ("op", "holds"), [("<", False), ("<=", True), ("==", True), ("!=", False), (">=", True), (">", False)]
)
def test_operators(op: str, holds: bool) -> None:
    tally = Tally()
    tally.add(made.step(1))
    (verdict,) = judge([parse_expectation(f"steps {op} 1")], tally)
    assert verdict.holds is holds
    assert verdict.is_met is holds


@pytest.mark.parametrize("op", ["<", ">", "==", "!="])
def test_what_was_not_measured_is_never_met(op: str) -> None:
    """Whichever way the comparison points."""
    (verdict,) = judge([parse_expectation(f"accept_length {op} 1.8")], Tally())
    assert verdict.holds is None
    assert not verdict.is_met
    assert verdict.text == f"expected accept_length {op} 1.8, got no value: nothing was verified"
