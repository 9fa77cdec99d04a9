"""Lengths of time, written and read."""

from __future__ import annotations

import pytest

from probes.duration import duration_text, parse_duration, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("2h", 7200), ("1h30m", 5400), ("1d", 86_400), ("0.5s", 0.5), (" 1m1.5s ", 61.5)],
)
def test_parse(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "15", "m", "15 m", "1.5h", "-5m", "30m1h", "1h-5m", "nan", "soon", "1m1m"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="expected one like 90s, 15m"):
        parse_duration(text)


def test_a_bare_number_is_seconds_where_that_is_said() -> None:
    assert [parse_seconds(text) for text in ("90", "0.5", "1m30s")] == [90, 0.5, 90]
    with pytest.raises(ValueError, match="expected one like 90s, 15m"):
        parse_seconds("1e3")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0 s"),
        (45.4, "45 s"),
        (90, "90 s"),
        (779, "13 min"),
        (3599, "1 h"),
        (5400, "1 h 30 min"),
        (187_200, "2 d 4 h"),
        (604_800, "7 d"),
    ],
)
def test_text(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
