"""The live charts: throughput, accept length and load over one time axis. Pure.

Every chart has its name, what it is now and its scale to the left, and no frame: the numbers stand at the top and the
bottom of the area they measure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workbench.time_text import age_text
from workbench.tui.line_panel import Line, Word
from workbench.tui.plot import Glyphs, area, coloured, nice_top, scale_text, stacked
from workbench.tui.plot_axis import Axis, Column, legend, make_axis, mode_band, moment_line, time_line
from workbench.tui.session_state import Connection, SessionState

LABEL = 16
SCALE = 5
GUTTER = LABEL + SCALE + 1
AXIS_LINES = 3
FEWEST_ROWS = 2
AIRY_ROWS = 5
"""From this many rows a chart on there is a blank line between two."""
SILENT = (Connection.STALE, Connection.GONE, Connection.WAITING)


@dataclass(frozen=True)
class Chart:
    """One area: ``labels`` stand beside it from the top, as far as its rows go."""

    labels: Sequence[Line]
    rows: Sequence[str]
    roles: Sequence[str]
    low: float
    high: float

    def lines(self, glyphs: Glyphs) -> list[Line]:
        last = len(self.rows) - 1
        lines: list[Line] = []
        for y, row in enumerate(self.rows):
            label = list(self.labels[y]) if y < len(self.labels) else []
            number = scale_text(self.high) if y == 0 else scale_text(self.low) if y == last else ""
            pad = LABEL - sum(len(text) for text, _ in label)
            scale: list[Word] = [(" " * pad + number.rjust(SCALE), "dim"), (glyphs.axis, "dim")]
            lines.append([*label, *scale, *coloured(row, self.roles)])
        return lines


AREA_ROLES = {"spec": "area-spec", "plain": "area-plain", "prefill": "area-prefill"}


def ran_roles(columns: Sequence[Column]) -> list[str]:
    """An area in the colour of what ran, dimmer than words are; the band below says the same without colour."""
    return [AREA_ROLES.get(column.ran, "area") for column in columns]


def throughput_chart(state: SessionState, now: float, axis: Axis, height: int, glyphs: Glyphs) -> Chart:
    """Tokens a second of all requests together."""
    values = [column.tok_s for column in axis.columns]
    high = nice_top(max((value for value in values if value is not None), default=0.0))
    rate = None if state.connection(now) in SILENT else state.tokens_per_second(now)
    labels: list[Line] = [
        [("tokens/s", "strong")],
        [("now ", "dim"), (f"{rate:.1f}" if rate is not None else "unknown", "text")],
    ]
    return Chart(labels, area(values, height, 0.0, high, glyphs), ran_roles(axis.columns), 0.0, high)


def accept_chart(state: SessionState, now: float, axis: Axis, height: int, glyphs: Glyphs) -> Chart:
    """Accept length; it begins at 1, which is what a verify gives when no draft is right."""
    values = [column.accept for column in axis.columns]
    high = max(2.0, nice_top(max((value for value in values if value is not None), default=0.0)))
    acceptance = state.acceptance(now)
    labels: list[Line] = [[("accept length", "strong")]]
    if acceptance.value is not None:
        labels.append([("now ", "dim"), (f"{acceptance.value:.2f}", "text")])
    else:
        labels.append([("now ", "dim"), ("n/a", "idle")])
        if acceptance.last is not None:
            labels.append([(f"{acceptance.last:.2f} {age_text(acceptance.age)} ago", "dim")])
    return Chart(labels, area(values, height, 1.0, high, glyphs), ["area-spec"] * len(values), 1.0, high)


def load_chart(state: SessionState, now: float, axis: Axis, height: int, glyphs: Glyphs) -> Chart:
    """Running requests, and on top of them those that wait."""
    values = [column.load for column in axis.columns]
    high = nice_top(max((value[1] for value in values if value is not None), default=0.0))
    step = state.last_step
    known = step is not None and state.connection(now) not in SILENT
    idle = state.is_idle
    running = "?" if not known or step is None else "0" if idle else str(step.requests + step.prefill_requests)
    waiting = "?" if not known or step is None else "0" if idle else str(step.queue)
    labels: list[Line] = [
        [("requests", "strong")],
        [(f"{glyphs.levels[-1]} ", "area"), ("running ", "dim"), (running, "text")],
        [(f"{glyphs.shade} ", "area"), ("waiting ", "dim"), (waiting, "text")],
    ]
    if height < len(labels):  # one line less to say it in
        labels = [[("running ", "strong"), (running, "text")], [("waiting ", "strong"), (waiting, "text")]]
    return Chart(labels, stacked(values, height, 0.0, high, glyphs), ["area"] * len(values), 0.0, high)


MakeChart = Callable[[SessionState, float, Axis, int, Glyphs], Chart]


def chart_lines(
    state: SessionState, now: float, width: int, height: int, glyphs: Glyphs, charts: Sequence[MakeChart]
) -> list[Line]:
    """The charts above each other in ``height`` lines, the first ones a row taller where it does not divide; the time
    axis below them: what ran, what happened, how long ago."""
    axis = make_axis(state.history, state.engine_now(now), max(1, width - GUTTER))
    room = height - AXIS_LINES
    fitting = charts[: max(1, room // FEWEST_ROWS)]
    apart = len(fitting) - 1 if room >= AIRY_ROWS * len(fitting) else 0
    room -= apart
    lines: list[Line] = []
    for index, make in enumerate(fitting):
        rows = room // len(fitting) + (index < room % len(fitting))
        lines += [[]] if index and apart else []
        lines += make(state, now, axis, max(1, rows), glyphs).lines(glyphs)
    moments = state.history.moments
    lines.append([_gutter("mode"), (glyphs.axis, "dim"), *mode_band(axis.columns, glyphs)])
    lines.append([_gutter("changes"), (glyphs.axis, "dim"), *moment_line(axis, moments)])
    lines.append([_gutter(f"column = {axis.seconds} s"), (" ", "dim"), *time_line(axis)])
    return lines[:height]


def chart_legend(state: SessionState, now: float, width: int) -> str:
    """What the letters on the line of changes mean, those that are there."""
    axis = make_axis(state.history, state.engine_now(now), max(1, width - GUTTER))
    return legend(axis, state.history.moments)


def _gutter(text: str) -> Word:
    return (text.ljust(LABEL + SCALE), "dim")
