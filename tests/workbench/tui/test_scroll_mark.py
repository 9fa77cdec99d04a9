"""The one-column scrollbar."""

from __future__ import annotations

import pytest

from workbench.tui.scroll_mark import RAIL, THUMB, scroll_mark


def bar(height: int, first: int, shown: int, total: int) -> str:
    return "".join(scroll_mark(y, height, first, shown, total) for y in range(height))


def test_nothing_to_scroll_is_blank() -> None:
    assert bar(5, 0, 5, 3) == " " * 5
    assert bar(5, 0, 5, 5) == " " * 5


def test_ends_touch_the_ends() -> None:
    assert bar(6, 0, 6, 12) == THUMB * 3 + RAIL * 3
    assert bar(6, 6, 6, 12) == RAIL * 3 + THUMB * 3
    assert bar(6, 3, 6, 12) == RAIL + THUMB * 3 + RAIL * 2 or bar(6, 3, 6, 12) == RAIL * 2 + THUMB * 3 + RAIL


@pytest.mark.parametrize("first", [0, 1, 9_995, 19_990])
def test_a_long_table_still_has_a_thumb(first: int) -> None:
    assert bar(10, first, 10, 20_000).count(THUMB) == 1
