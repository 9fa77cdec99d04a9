"""A scrollbar of one column, drawn with the rows. Moving it needs no layout, which a live table has no time for."""

from __future__ import annotations

THUMB, RAIL = "┃", "│"


def scroll_mark(y: int, height: int, first: int, shown: int, total: int) -> str:
    """The mark on line ``y`` of ``height``, when ``shown`` of ``total`` rows are seen from row ``first`` on.

    A space when everything is seen.
    """
    if total <= shown or height <= 0:
        return " "
    size = max(1, round(height * shown / total))
    top = round((height - size) * first / (total - shown))
    return THUMB if top <= y < top + size else RAIL
