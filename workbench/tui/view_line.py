"""The line that names the views and the keys that lead to them."""

from __future__ import annotations

from collections.abc import Sequence

from workbench.tui.line_panel import Line, Word


def view_line(titles: Sequence[str], current: int, width: int = 10_000) -> Line:
    """`` 1 overview  2 steps ``: the current one is marked by brackets too, so that it shows without colour. Where that
    is too wide, the others are their numbers alone."""
    has_titles = sum(len(title) + 4 for title in titles) <= width
    line: list[Word] = []
    for index, title in enumerate(titles):
        if index == current:
            line.append((f"[{index + 1} {title}]", "strong"))
        else:
            line += [(f" {index + 1}", "text"), (f" {title} " if has_titles else " ", "dim")]
    return line
