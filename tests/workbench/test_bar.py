"""Bars of part cells."""

from __future__ import annotations

from workbench.bar import bar


def test_anything_above_nothing_shows_and_nothing_is_longer_than_its_room() -> None:
    assert [bar(share, 4) for share in (-1, 0, 0.001, 0.5, 0.51, 1, 1.7)] == ["", "", "▏", "██", "██▏", "████", "████"]


def test_without_parts_a_bar_is_whole_cells() -> None:
    assert [bar(share, 10, "#", "") for share in (0, 0.001, 0.3, 1)] == ["", "#", "###", "#" * 10]
