"""How full the KV pools are, as bars. Pure."""

from __future__ import annotations

from workbench.tui.line_panel import Line, Word
from workbench.tui.plot import Glyphs, bar
from workbench.tui.session_state import SessionState

FULL, NEARLY = 0.95, 0.85


def pool_lines(state: SessionState, width: int, glyphs: Glyphs) -> list[Line]:
    """A line a pool: name, bar, share, used of total."""
    step = state.last_step
    if step is None or not step.kv:
        return [[("KV ", "strong"), ("not known before the first step", "dim")]]
    numbers = max(len(f"{use.used}/{use.total}") for use in step.kv.values())
    size = max(4, min(40, width - 10 - 8 - numbers - 8))
    lines: list[Line] = []
    for name, use in step.kv.items():
        share = use.used / use.total if use.total else 0.0
        role = "bad" if share >= FULL else "warn" if share >= NEARLY else "text"
        word = " full" if share >= FULL else " nearly full" if share >= NEARLY else ""
        words: list[Word] = [
            ("KV ", "strong"),
            (f"{name:<7} ", "dim"),
            (bar(share, size, glyphs), "area" if role == "text" else role),
            (f" {share:4.0%} ", role),
            (f" {use.used}/{use.total}".rjust(numbers + 1), "text"),
            (word if len(word) + 10 + size + 8 + numbers <= width else "", role),
        ]
        lines.append([entry for entry in words if entry[0]])
    return lines
