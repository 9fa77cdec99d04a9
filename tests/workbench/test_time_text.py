"""Times as a clock shows them."""

from __future__ import annotations

import time

from workbench.time_text import age_text, clock_text, elapsed_text, offset_text


def test_time_of_day_is_local() -> None:
    t = time.mktime((2026, 3, 1, 14, 3, 20, 0, 0, -1)) + 0.125
    assert clock_text(t) == "14:03:20"
    assert clock_text(t, ms=True) == "14:03:20.125"


def test_time_since_a_start() -> None:
    assert [elapsed_text(s) for s in (-1, 0, 42, 725, 3723)] == ["0:00", "0:00", "0:42", "12:05", "1:02:03"]
    assert [offset_text(t) for t in (0, 59.96, 60, 3661.25)] == ["0:00.0", "0:59.9", "1:00.0", "1:01:01.2"]


def test_ages() -> None:
    assert [age_text(seconds) for seconds in (0.4, 59, 125, 7300)] == ["0 s", "59 s", "2 min", "2 h"]
