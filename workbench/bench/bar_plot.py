"""Bars for a terminal: each as long as its number, the number behind it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.bar import bar
from workbench.cell_text import width_of

LEAST = 10
"""Cells that the longest bar has at least, however narrow the terminal."""


def bar_lines(groups: Sequence[tuple[str, Sequence[tuple[str, float]]]], columns: int) -> list[str]:
    """Groups of named bars on one common scale, the group's name before its first.

    Args:
        groups: (name, [(label, value)]).
        columns: of the terminal.
    """
    values = [value for _, bars in groups for _, value in bars]
    if not values:
        return []
    names = max(width_of(name) for name, _ in groups)
    labels = max(width_of(label) for _, bars in groups for label, _ in bars)
    figures = max(len(f"{value:.1f}") for value in values)
    most = max(values)
    cells = max(LEAST, columns - names - labels - figures - 5)
    lines = []
    for name, bars in groups:
        for number, (label, value) in enumerate(bars):
            head = (name if number == 0 else "").rjust(names)
            drawn = bar(value / most if most > 0 else 0.0, cells)
            lines.append(f"{head}  {label.ljust(labels)}  {drawn} {value:.1f}".rstrip())
    return lines
