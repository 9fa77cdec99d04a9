"""Text cut and padded by terminal cells, not by characters, so that columns stay aligned whatever a name contains."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal

from rich.cells import cell_len, chop_cells, set_cell_size

Align = Literal["left", "right"]

CACHED_LENGTH = 256
"""Longer texts are cleaned each time: a cache of them would have no bound worth the name."""

# Characters that terminals disagree about: joiners and variation selectors change the width of what stands before
# them, direction marks move it. Without them every terminal counts the same cells.
_UNSTABLE = dict.fromkeys(
    [0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
    + [*range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400)]
)


def clean(text: str) -> str:
    """One line of text that every terminal draws in the same number of cells; no control or escape character is left.

    Line breaks and tabs become spaces, other control characters U+FFFD.
    """
    if text.isascii() and text.isprintable():
        return text
    return _cleaned(text) if len(text) <= CACHED_LENGTH else _clean(text)


def _clean(text: str) -> str:
    text = unicodedata.normalize("NFC", text).translate(_UNSTABLE)
    if text.isprintable():  # then nothing in it is Cc or Cs, which is all that the rest looks for
        return text
    return "".join(" " if c in "\n\r\t" else "\ufffd" if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


_cleaned = lru_cache(maxsize=4096)(_clean)  # a live table asks for the same few cells thousands of times a second


def fit(text: str, width: int, align: Align = "left") -> str:
    """Clean text in exactly ``width`` cells: padded, or cut with an ellipsis."""
    if width <= 0:
        return ""
    text = clean(text)
    size = cell_len(text)
    if size > width:
        text, size = set_cell_size(text, width - 1) + "…", width
    padding = " " * (width - size)
    return padding + text if align == "right" else text + padding


def width_of(text: str) -> int:
    """Terminal cells of the cleaned text."""
    return cell_len(clean(text))


def wrap(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` cells, broken between words; a word longer than a line is cut."""
    lines = [""]
    for word in clean(text).split(" "):
        for part in chop_cells(word, width) if cell_len(word) > width else [word]:
            joined = f"{lines[-1]} {part}" if lines[-1] else part
            if cell_len(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(part)
    return lines
