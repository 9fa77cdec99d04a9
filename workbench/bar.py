"""A horizontal bar of characters, to a part of a cell. Pure."""

from __future__ import annotations

import math

EIGHTHS = "▏▎▍▌▋▊▉"


def bar(share: float, cells: int, full: str = "█", parts: str = EIGHTHS) -> str:
    """As much of ``cells`` as ``share`` (0 to 1) says; anything above nothing shows.

    Args:
        full: a whole cell.
        parts: the parts of a cell from the thinnest on; empty where there are none.
    """
    steps = len(parts) + 1
    filled = max(0, min(cells * steps, math.ceil(share * cells * steps)))
    whole, rest = divmod(filled, steps)
    return full * whole + (parts[rest - 1] if rest else "")
