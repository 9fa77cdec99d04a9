"""The time axis that charts share: how much time a column is, what ran in it, what happened, and how long ago. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from workbench.tui.history import History, Moment
from workbench.tui.line_panel import Word
from workbench.tui.plot import Glyphs

SPAN_S = 240
"""About as much time as a chart shows, whatever its width."""
MOSTLY = 0.9

Ran = Literal["spec", "plain", "both", "prefill", "idle", "unknown"]

RAN_ROLES: dict[Ran, str] = {
    "spec": "spec",
    "plain": "plain",
    "both": "text",
    "prefill": "prefill",
    "idle": "dim",
    "unknown": "dim",
}
LETTERS = {"knob": "K", "gap": "G", "restart": "R", "alert": "A"}
MOMENT_ROLES = {"knob": "note", "gap": "bad", "restart": "bad", "alert": "warn"}
PRECEDENCE = ("knob", "alert", "gap", "restart")


@dataclass(frozen=True)
class Column:
    """What one column of a chart shows: some seconds together. None is "nothing to show", never 0."""

    ran: Ran
    tok_s: float | None = None
    accept: float | None = None
    """1 + correct drafts / verifies, as a ratio of sums."""
    load: tuple[float, float] | None = None
    """(running, running + waiting): the most there were."""


@dataclass(frozen=True)
class Axis:
    """``columns`` end at second ``end``; each is ``seconds`` long."""

    columns: list[Column]
    seconds: int
    end: int

    def place(self, t: float) -> int | None:
        """The column that ``t`` falls into; None when it is off the chart."""
        index = len(self.columns) - 1 - (self.end - 1 - math.floor(t)) // self.seconds
        return index if 0 <= index < len(self.columns) else None


def make_axis(history: History, now: float, width: int) -> Axis:
    """The last minutes up to ``now`` (the engine's time) in ``width`` columns.

    The second that runs is left out: its sums are not complete. Columns begin at whole multiples of their length, so
    that a column keeps its seconds, and its height, while it moves to the left.
    """
    seconds = max(1, round(SPAN_S / max(1, width)))
    complete = math.floor(now)
    end = math.ceil(complete / seconds) * seconds
    starts = range(end - width * seconds, end, seconds)
    return Axis([_column(history, start, min(start + seconds, complete)) for start in starts], seconds, end)


def _column(history: History, start: int, end: int) -> Column:
    known = list(history.between(start, end))
    if not known:
        return Column("unknown")
    spec, plain, prefill = sum(s.spec for s in known), sum(s.plain for s in known), sum(s.prefill for s in known)
    if decoding := spec + plain:
        ran: Ran = "spec" if spec >= MOSTLY * decoding else "plain" if plain >= MOSTLY * decoding else "both"
    else:
        ran = "prefill" if prefill else "idle"
    running = max(s.running for s in known)
    whole = [s for s in known if not s.is_lossy]
    verified = sum(s.verified for s in whole)
    return Column(
        ran,
        tok_s=sum(s.emitted for s in whole) / len(whole) if whole else None,
        accept=1 + sum(s.correct for s in whole) / verified if verified else None,
        load=(running, running + max(s.queue for s in known)),
    )


def mode_band(columns: Sequence[Column], glyphs: Glyphs) -> list[Word]:
    """What ran, as a line that names itself: ``━━ spec ━━━━━━┄┄ plain ┄┄┄``. A short stretch has its sign only."""
    signs = {"spec": glyphs.spec, "plain": glyphs.plain, "both": glyphs.both, "prefill": glyphs.prefill}
    words: list[Word] = []
    for ran, run in groupby(column.ran for column in columns):
        length = len(list(run))
        sign = signs.get(ran, " ")
        name = "" if ran == "unknown" else f" {ran} "
        if length < len(name) + 2:
            name = ""
        lead = min(2, length - len(name))
        words.append((sign * lead + name + sign * (length - lead - len(name)), RAN_ROLES[ran]))
    return words


def moment_line(axis: Axis, moments: Sequence[Moment]) -> list[Word]:
    """A letter under the column in which something happened, and in words as much as fits before the next one."""
    found: dict[int, Moment] = {}
    for moment in moments:
        index = axis.place(moment.t)
        if index is None:
            continue
        there = found.get(index)
        if there is None or PRECEDENCE.index(moment.kind) >= PRECEDENCE.index(there.kind):
            found[index] = moment
    words: list[Word] = []
    at = 0
    places = sorted(found)
    for index, place in enumerate(places):
        moment = found[place]
        room = (places[index + 1] if index + 1 < len(places) else len(axis.columns)) - place
        text = f"{LETTERS[moment.kind]} {moment.text}"
        # Words that do not fit are worse than none: half a number is another number.
        text = text if len(text) < room else LETTERS[moment.kind]
        words += [(" " * (place - at), "text"), (text, MOMENT_ROLES[moment.kind])]
        at = place + len(text)
    return [*[word for word in words if word[0]], (" " * (len(axis.columns) - at), "text")]


def time_line(axis: Axis) -> list[Word]:
    """How long ago: a label at every whole minute, ``now`` at the end."""
    width = len(axis.columns)
    row = [" "] * width
    row[-3:] = "now"[:width]
    taken = width - 3
    for minute in range(1, axis.seconds * width // 60 + 1):
        text = f"-{minute} min"
        right = width - round(minute * 60 / axis.seconds)
        left = right - 1
        if left < 0 or left + len(text) + 1 > taken:
            continue
        row[left : left + len(text)] = text
        taken = left
    return [("".join(row), "dim")]


def legend(axis: Axis, moments: Sequence[Moment]) -> str:
    """What the letters stand for, those that are there."""
    names = {"knob": "K knob changed", "gap": "G events lost", "restart": "R engine restarted", "alert": "A alert"}
    kinds = {moment.kind for moment in moments if axis.place(moment.t) is not None}
    return "  ".join(text for kind, text in names.items() if kind in kinds)
