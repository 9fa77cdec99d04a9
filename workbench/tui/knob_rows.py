"""What the lists of the knobs view say: a line a knob, a line a change. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from probes.duration import duration_text
from probes.events import KnobEvent
from probes.knobs import KNOBS, Knobs, KnobSpec
from workbench.cell_text import fit
from workbench.step_words import changes_text
from workbench.tui.audit_trail import AuditTrail
from workbench.tui.line_panel import Line, Word
from workbench.tui.session_state import SessionState

NAME, VALUE, START = 13, 14, 9
MEANS_FROM = 110
"""From this many cells on there is room for what a knob means and may be, beside its values."""
MEANS = 54
WHEN, STEP, EPOCH = 12, 8, 6

_DEFAULTS = msgspec.structs.asdict(Knobs())


@dataclass(frozen=True)
class KnobRow:
    """One knob as of now; rows that are equal look equal."""

    name: str
    value: Any
    held: Any
    """Value that waits to be changed together with others, or None."""
    at_start: Any
    last: str
    """The newest change, and the change back that waits."""
    is_timed: bool


def knob_rows(state: SessionState, held: dict[str, Any], now: float) -> list[KnobRow]:
    """The engine's knobs in our order, then those that only it knows. ``now`` is the engine's time."""
    names = [name for name in KNOBS if name in state.knobs] + [name for name in state.knobs if name not in KNOBS]
    return [
        KnobRow(
            name,
            state.knobs[name],
            held.get(name),
            state.trail.at_start.get(name),
            _last_words(state.trail, name, now),
            name in state.trail.reverts,
        )
        for name in names
    ]


def _last_words(trail: AuditTrail, name: str, now: float) -> str:
    words: list[str] = []
    revert = trail.reverts.get(name)
    if revert:
        words.append(f"back to {revert.back_to} in {duration_text(revert.t - now)}")
    change = trail.last_change(name)
    if change:
        by = f" by {change.who}" if change.who else ""
        words.append(f"step {change.step}{by}{f' ({change.why})' if change.why else ''}")
    return ", ".join(words)


def knob_header(width: int, is_start_known: bool = True) -> list[Word]:
    """``start`` is the value at the engine's start; where changes before this screen are not known, ``before``."""
    start = "start" if is_start_known else "before"
    means = f" {fit('what it means', MEANS)}" if width >= MEANS_FROM else ""
    return [(f"{fit('knob', NAME)} {fit('value', VALUE)} {fit(start, START)}{means} last change"[:width], "dim")]


def knob_line(row: KnobRow, width: int) -> list[Word]:
    """Name, value (and the one held), value at the start, meaning where there is room, last change."""
    value = str(row.value) if row.held is None or row.held == row.value else f"{row.value} → {row.held}"
    is_moved = row.at_start is not None and row.value != row.at_start
    words: list[Word] = [
        (fit(row.name, NAME), "strong"),
        (" " + fit(value, VALUE), "warn" if value != str(row.value) else "good" if is_moved else "text"),
        (" " + fit("·" if row.at_start is None else str(row.at_start), START), "dim"),
    ]
    used = NAME + VALUE + START + 2
    if width >= MEANS_FROM:
        words.append((" " + fit(KNOBS[row.name].help if row.name in KNOBS else "", MEANS), "dim"))
        used += MEANS + 1
    words.append((" " + fit(row.last, width - used - 1), "warn" if row.is_timed else "text"))
    return words


def allowed_text(knob: KnobSpec) -> str:
    """``auto, on, off`` or ``0 to 4096``."""
    return ", ".join(knob.choices) if knob.choices else f"{knob.low} to {knob.high}"


def meaning_lines(row: KnobRow | None) -> list[Line]:
    """What the selected knob means; what it may be, its default, and its last change in full."""
    if row is None:
        return [[("the engine has not said its knobs yet", "dim")], []]
    knob = KNOBS.get(row.name)
    if knob is None:
        return [[(f" {row.name}", "strong"), (" is a knob of a newer engine", "dim")], []]
    last = f"; {row.last}" if row.last else ""
    return [
        [(f" {row.name}: ", "strong"), (knob.help, "text")],
        [(f" {allowed_text(knob)}; default {_DEFAULTS[row.name]}{last}", "dim")],
    ]


def trail_header(width: int) -> list[Word]:
    cells = [fit("changed", WHEN), fit("step", STEP, "right"), fit("epoch", EPOCH, "right"), "what, by whom, why"]
    return [(" ".join(cells)[:width], "dim")]


def trail_line(change: KnobEvent, width: int, trail: AuditTrail | None, now: float) -> list[Word]:
    """When, from which step, in which epoch; old → new, who, why, and whether it will be taken back."""
    is_now = trail is not None and trail.is_of_now(change)
    when = f"{duration_text(now - change.t)} ago" if is_now else f"boot {change.boot_id}"
    due = trail.waits_for(change) if trail else None
    if due is not None:
        after = f"  back in {duration_text(due - now)}"
    elif change.revert_at is not None and is_now:
        after = "  (was for a time)"
    else:
        after = ""
    what = changes_text(change.old, change.new) if change.old != change.new else _unchanged_text(change)
    by = f" by {change.who}" if change.who else ""
    why = f" ({change.why})" if change.why else ""
    used = WHEN + STEP + EPOCH + 3
    text = fit(f"{what}{by}{after}{why}", width - used).rstrip()
    words: list[Word] = [
        (fit(when, WHEN), "dim"),
        (" " + fit(str(change.step), STEP, "right"), "text" if is_now else "dim"),
        (" " + fit(str(change.knob_epoch), EPOCH, "right"), "dim"),
        (" " + text, "warn" if due is not None else "text" if is_now else "dim"),
    ]
    return words


def _unchanged_text(change: KnobEvent) -> str:
    """An event that only says how long values stay."""
    return ", ".join(f"{knob} stays {value}" for knob, value in change.new.items())
