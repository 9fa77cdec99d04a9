"""Charts as lines of text: areas of eighth blocks, or of ASCII where the terminal has nothing better. Pure.

A value that is there is drawn, even 0, as the thinnest block; a value that is not there is a blank. Nothing is joined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.bar import EIGHTHS
from workbench.bar import bar as filled_bar
from workbench.tui.line_panel import Word

ASCII_TERMINALS = frozenset({"linux", "vt100", "vt102", "vt220", "ansi"})


@dataclass(frozen=True)
class Glyphs:
    """The characters that a chart is made of; each is one cell wide."""

    levels: str
    """From the thinnest to a full cell."""
    shade: str
    """The upper part of a stacked area."""
    full: str
    """A whole cell of a bar."""
    parts: str
    """Parts of one, from the thinnest on."""
    rest: str
    """The empty part of a bar."""
    axis: str
    spec: str
    plain: str
    both: str
    """A stretch of time in which both were used."""
    prefill: str
    times: str


BLOCKS = Glyphs("▁▂▃▄▅▆▇█", "░", "█", EIGHTHS, "░", "│", "━", "┄", "≈", "·", "×")
ASCII = Glyphs(".:|#", "o", "#", "", ".", "|", "=", "-", "~", ":", "x")


def glyphs_for(environment: Mapping[str, str]) -> Glyphs:
    """ASCII on a console whose font is small, and where the locale says that text is not UTF-8.

    Without any locale the terminal is taken for a modern one, as the rest of the screen takes it. ``LC_CTYPE`` counts
    only beside no ``LANG``: Python itself sets it to C.UTF-8 when LANG is C.
    """
    if environment.get("TERM", "") in ASCII_TERMINALS:
        return ASCII
    locale = environment.get("LC_ALL") or environment.get("LANG") or environment.get("LC_CTYPE") or ""
    if locale and "utf" not in locale.lower():
        return ASCII
    return BLOCKS


def nice_top(value: float) -> float:
    """The smallest round number that is not below ``value``."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value * (1 - 1e-9))


def scale_text(value: float) -> str:
    """A number of the scale in at most four cells: ``0``, ``1.5``, ``80``, ``1500``, ``20k``."""
    if value >= 1e6:
        return f"{value / 1e6:.0f}M"
    if value >= 1e4:
        return f"{value / 1e3:.0f}k"
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def area(values: Sequence[float | None], height: int, low: float, high: float, glyphs: Glyphs) -> list[str]:
    """Rows from top to bottom, a column a value; what is beyond the scale is cut at its end."""
    return stacked([(value, value) if value is not None else None for value in values], height, low, high, glyphs)


def stacked(
    values: Sequence[tuple[float, float] | None], height: int, low: float, high: float, glyphs: Glyphs
) -> list[str]:
    """Areas of (lower, total): solid up to ``lower``, shaded from there to ``total``."""
    steps = len(glyphs.levels)

    def fill(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.0
        return max(1, min(height * steps, round(share * height * steps)))

    def cells(value: tuple[float, float] | None) -> tuple[int, int]:
        """Eighths that are solid, and eighths in all. Where something stands on top both are whole cells: a cell is
        solid or shaded, and the shaded part is never too thin to be seen."""
        if value is None:
            return 0, 0
        solid, total = fill(value[0]), fill(value[1])
        if value[1] <= value[0]:
            return solid, solid
        whole = min(height - 1, round(solid / steps))
        return whole * steps, max(whole + 1, round(total / steps)) * steps

    columns = [cells(value) for value in values]
    rows: list[str] = []
    for y in range(height):
        floor = (height - 1 - y) * steps
        row = ""
        for solid, total in columns:
            if solid > floor:
                row += glyphs.levels[min(steps, solid - floor) - 1]
            else:
                row += glyphs.shade if total > max(floor, solid) else " "
        rows.append(row)
    return rows


def bar(share: float, width: int, glyphs: Glyphs) -> str:
    """A bar of ``width`` cells filled by ``share`` (0 to 1), with its empty part."""
    text = filled_bar(share, width, glyphs.full, glyphs.parts)
    return text + glyphs.rest * (width - len(text))


def coloured(text: str, roles: Sequence[str]) -> list[Word]:
    """A row of a chart in words, a word for each run of one role."""
    words: list[Word] = []
    start = 0
    for index in range(1, len(text) + 1):
        if index == len(text) or roles[index] != roles[start]:
            words.append((text[start:index], roles[start]))
            start = index
    return words
