"""Acceptance in lines: by position for this knob epoch and the one before, over time, and by epoch. Pure."""

from __future__ import annotations

from workbench.cell_text import fit
from workbench.time_text import age_text
from workbench.tui.accept_epochs import Epoch
from workbench.tui.charts import AXIS_LINES, accept_chart, chart_lines
from workbench.tui.line_panel import Line, Word, fit_items
from workbench.tui.plot import Glyphs, bar
from workbench.tui.session_state import SessionState

DEFINITION = "accept length = tokens a verify gives = 1 + correct drafts / verifies; the 1 is the bonus token"
SHORT = "accept length = 1 (bonus token) + correct drafts / verifies"
RATE = "accept rate = correct drafts / proposed ones; a tree proposes many of which one path can be right"
COLUMNS = (("epoch", 6), ("lasted", 8), ("steps", 8), ("verifies", 9), ("accept length", 14), ("accept rate", 12))
BETWEEN = 3
AIRY = 24
"""From this many lines on there is room for blank ones."""
LEAST_CHART, TALLEST_CHART = 3, 10
LONGEST_BAR = 40


def accept_lines(state: SessionState, now: float, width: int, height: int, glyphs: Glyphs) -> list[Line]:
    """Exactly ``height`` lines of at most ``width`` cells."""
    epochs = state.epochs
    lines: list[Line] = [[(DEFINITION if width > len(DEFINITION) else SHORT, "note")]]
    if epochs.current is None:
        lines.append([("no step yet", "dim")])
        return _filled(lines, height)
    airy = height >= AIRY
    blank: list[Line] = [[]] if airy else []
    lines += [[(RATE, "note")]] if airy and width >= len(RATE) else []
    lines += blank
    depths = max(2, *(epoch.depth for epoch in (epochs.current, epochs.before) if epoch))
    least = AXIS_LINES + LEAST_CHART + 2 + 3 * len(blank)  # what the bars leave: the chart, and a header and a row
    room = height - len(lines) - least
    half = (width - BETWEEN) // 2
    left = by_position(epochs.current, "now", half, room, depths, glyphs)
    right = by_position(epochs.before, "before", half, room, depths, glyphs) if epochs.before else []
    lines += _side_by_side(left, right, half)
    lines += blank
    room = height - len(lines) - AXIS_LINES - len(blank)
    chart_rows = max(LEAST_CHART, min(TALLEST_CHART, room - len(epochs.epochs) - 1, room // 2))
    lines += chart_lines(state, now, width, chart_rows + AXIS_LINES, glyphs, (accept_chart,))
    lines += blank
    lines += epoch_table(state, width, height - len(lines))
    return _filled(lines, height)


def by_position(epoch: Epoch, which: str, width: int, rows: int, depths: int, glyphs: Glyphs) -> list[Line]:
    """Two header lines and a bar a depth, in at most ``rows`` lines; or that nothing was verified."""
    length = epoch.accept_length
    items: list[Line] = [[(f"epoch {epoch.number}", "strong"), (f" {which}", "dim")]]
    if length is not None:
        items.append([("accept ", "dim"), (f"{length:.2f}", "strong")])
    if epoch.knobs:
        items.append([("tree ", "dim"), (epoch.tree, "text")])
    title = fit_items(items, width)
    if length is None:
        return [title, [("nothing verified in this epoch", "idle")]]
    numbers = len(str(epoch.verifies)) * 2 + 1
    then = "of those above" if width >= 50 else "of above"
    column = len(then) + 2
    with_then = width >= 6 + 5 + 6 + numbers + column
    size = min(LONGEST_BAR, width - 6 - 6 - numbers - column * with_then)
    header = (
        fit("depth accepted, of all verifies" if size > 12 else "depth of all verifies", size + 12 + numbers)
        + then.rjust(column) * with_then
    )
    lines: list[Line] = [title, [(header, "dim")]]
    fitting = min(depths, max(1, rows - 2))
    if fitting < depths:
        fitting = max(1, fitting - 1)
    for depth in range(1, fitting + 1):
        hits, parents = epoch.reached(depth), epoch.reached(depth - 1)
        words: list[Word] = [
            (f"{depth:>4}  ", "text"),
            (bar(hits / epoch.verifies, size, glyphs), "area-spec"),
            (f" {hits / epoch.verifies:4.0%} ", "strong"),
            (f"{hits}/{epoch.verifies}".rjust(numbers), "dim"),
        ]
        if with_then:
            words.append(((f"{hits / parents:.0%}" if parents else "-").rjust(column), "text"))
        lines.append(words)
    if fitting < depths:
        lines.append([(f"      {depths - fitting} deeper ones: enlarge the screen", "dim")])
    return lines


def epoch_table(state: SessionState, width: int, rows: int) -> list[Line]:
    """Header and the newest epochs, the newest first, in at most ``rows`` lines."""
    header = "".join(title.rjust(size) for title, size in COLUMNS) + "  knobs"
    lines: list[Line] = [[(fit(header, width), "dim")]]
    epochs = list(state.epochs.epochs)
    for index, epoch in enumerate(reversed(epochs)):
        lines.append(_epoch_row(epoch, index == 0, width))
    if len(lines) > rows:
        older = len(lines) - rows + 1
        lines = [*lines[: max(1, rows - 1)], [(f"  and {older} older", "dim")]]
    return lines[: max(0, rows)]


def _epoch_row(epoch: Epoch, is_current: bool, width: int) -> Line:
    length, rate = epoch.accept_length, epoch.accept_rate
    cells = [
        f"{'›' if is_current else ' '}{epoch.number:>5}",
        age_text(epoch.end - epoch.t),
        str(epoch.steps),
        str(epoch.verifies) if epoch.verifies else "none",
        f"{length:.2f}" if length is not None else "n/a",
        f"{rate:.1%}" if rate is not None else "n/a",
    ]
    roles = ["strong" if is_current else "text", "text", "text", "text", "strong" if length else "idle", "text"]
    words: list[Word] = [
        (fit(cell, size, "right"), role) for (_, size), cell, role in zip(COLUMNS, cells, roles, strict=True)
    ]
    left = width - sum(size for _, size in COLUMNS) - 2
    if left > 3:
        words.append(("  " + fit(_knob_text(epoch, left), left).rstrip(), "text"))
    return words


def _knob_text(epoch: Epoch, width: int) -> str:
    """What its opening changed, and where there is room the settings that matter for acceptance."""
    if not epoch.knobs:
        return "not seen"
    settings = f"spec {epoch.knobs.get('spec', '?')}, threshold {epoch.knobs.get('threshold', '?')}, tree {epoch.tree}"
    if not epoch.change:
        return settings if len(settings) <= width else f"tree {epoch.tree}"
    full = f"{epoch.change} ({settings})"
    return full if len(full) <= width else epoch.change


def _side_by_side(left: list[Line], right: list[Line], half: int) -> list[Line]:
    lines: list[Line] = []
    for y in range(max(len(left), len(right))):
        a = left[y] if y < len(left) else []
        b = right[y] if y < len(right) else []
        used = sum(len(text) for text, _ in a)
        lines.append([*a, (" " * (half - used + BETWEEN), "text"), *b] if b else a)
    return lines


def _filled(lines: list[Line], height: int) -> list[Line]:
    return [*lines[:height], *([] for _ in range(height - len(lines)))]
