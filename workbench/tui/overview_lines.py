"""The overview in lines: is speculation winning, how full is the KV, and the last minutes as charts. Pure."""

from __future__ import annotations

from workbench.tui.charts import (
    AXIS_LINES,
    MakeChart,
    accept_chart,
    chart_legend,
    chart_lines,
    load_chart,
    throughput_chart,
)
from workbench.tui.gain_words import TABLE_WIDTH, gain_lines, gain_table
from workbench.tui.gpu_lines import gpu_lines
from workbench.tui.line_panel import Line
from workbench.tui.plot import Glyphs
from workbench.tui.pool_bars import pool_lines
from workbench.tui.session_state import SessionState

CHARTS: tuple[MakeChart, ...] = (throughput_chart, accept_chart, load_chart)
SMALL = 3
"""Rows of a chart that everything else leaves it."""
WIDE = 180
"""From this many columns on the numbers stand beside the charts."""


def overview_lines(state: SessionState, now: float, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Exactly ``height`` lines of at most ``width`` cells."""
    lines = [*gain_lines(state, now, width, glyphs)]
    if width >= WIDE:
        side = TABLE_WIDTH
        left = width - side - 3
        lines += _gap(lines)
        charts = chart_lines(state, now, left, height - len(lines), glyphs, CHARTS)
        right = _numbers(state, now, side, len(charts), glyphs)
        lines += [_beside(a, left, right[y] if y < len(right) else []) for y, a in enumerate(charts)]
    else:
        pools = [*pool_lines(state, width, glyphs), *gpu_lines(state, now, width)]
        least = SMALL * len(CHARTS) + AXIS_LINES
        spare = height - len(lines) - len(pools) - least
        table: list[Line] = []
        if spare >= 8:
            table = gain_table(state, now, min(8, max(2, (spare - 4) // 3)), glyphs)
        if table:
            lines += [*_gap(lines), *table]
        if spare >= 4:
            lines += _gap(lines)
        lines += pools
        if spare >= 2:
            lines += _gap(lines)
        note = chart_legend(state, now, width) if spare >= 3 else ""
        lines += chart_lines(state, now, width, height - len(lines) - bool(note), glyphs, CHARTS)
        if note:
            lines.append([(note, "dim")])
    return [*lines[:height], *([] for _ in range(height - len(lines)))]


def _gap(lines: list[Line]) -> list[Line]:
    """A blank line, unless the last one is blank."""
    return [[]] if lines[-1] else []


def _numbers(state: SessionState, now: float, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """What stands beside the charts on a wide screen."""
    lines: list[Line] = [*pool_lines(state, width, glyphs), *gpu_lines(state, now, width), []]
    knobs: list[Line] = [[(f"{name:<14}", "dim"), (str(value), "text")] for name, value in state.knobs.items()]
    if knobs:
        knobs = [[("Knobs", "strong"), (f"  epoch {state.knob_epoch}", "dim")], *knobs, []]
    note = chart_legend(state, now, width)
    foot: list[Line] = [[(note, "dim")]] if note else []
    room = height - len(lines) - len(knobs) - len(foot) - 3
    table = gain_table(state, now, max(2, room), glyphs)
    if table:
        lines += [[("Gain by load", "strong"), ("  on over off, as measured", "dim")], *table, []]
    return [*lines, *knobs, *foot][:height]


def _beside(left: Line, left_width: int, right: Line) -> Line:
    used = sum(len(text) for text, _ in left)
    return [*left, (" " * (left_width - used + 3), "text"), *right]
