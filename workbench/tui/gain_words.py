"""What is known of speculation's gain, in words for the overview: yes, no, too close, or unknown and what would tell.
Pure."""

from __future__ import annotations

from workbench.cell_text import fit
from workbench.time_text import age_text
from workbench.tui.gain import FEWEST, Gain, Shape, Side, Verdict
from workbench.tui.line_panel import Line, Word, fit_items
from workbench.tui.plot import Glyphs
from workbench.tui.session_state import Connection, SessionState

QUESTION = "Is speculation winning now?"
ANSWERS = {
    Verdict.WINNING: (" YES ", "badge:good"),
    Verdict.LOSING: (" NO ", "badge:bad"),
    Verdict.CLOSE: (" TOO CLOSE TO TELL ", "badge:warn"),
    Verdict.UNKNOWN: (" UNKNOWN ", "badge:idle"),
}
UNKNOWN: Word = ANSWERS[Verdict.UNKNOWN]
FRESH_S = 5.0
ROOMY = 100
"""From this many columns on the interval stands beside the answer."""
TABLE_COLUMNS = (("requests", 9), ("on tok/s", 10), ("off tok/s", 10), ("gain", 8), ("90% interval", 16))
TABLE_WIDTH = 76


def requests_text(count: int) -> str:
    return f"{count} request{'' if count == 1 else 's'}"


def shape_of(state: SessionState) -> Shape | None:
    """The tree that speculation uses, or would use, by the knobs in force."""
    values = [state.knobs.get(name) for name in ("steps", "topk", "draft_tokens")]
    return (int(values[0]), int(values[1]), int(values[2])) if None not in values else None  # type: ignore[arg-type]


def gain_lines(state: SessionState, now: float, width: int, glyphs: Glyphs) -> list[Line]:
    """Three lines: the answer, what it rests on or what is missing, and what else is known."""
    engine_now = state.engine_now(now)
    shape = shape_of(state)
    load = state.gains.load(engine_now)
    send = _advice(state, "send the engine some requests")
    if state.draft_loaded is False:
        start = _advice(state, "; start the engine with --draft-model")
        return _unknown("no draft model is loaded", f"every step is plain{start}")
    if shape is None or state.gains.last_load is None:
        return _unknown("nothing was decoded yet", send)
    connection = state.connection(now)
    if load is None or connection in (Connection.GONE, Connection.STALE, Connection.IDLE):
        gain = state.gains.at(state.gains.last_load, shape, engine_now)
        lines = _unknown("nothing decodes at the moment", send)
        if connection in (Connection.GONE, Connection.STALE):
            lines = _unknown("the engine is not heard", "the first line says since when")
        if gain.ratio is not None:
            lines[1] = [("  before: ", "dim"), *_ratio_words(gain, engine_now, glyphs)]
        return lines
    gain = state.gains.at(load, shape, engine_now)
    if gain.ratio is not None:
        spread = f"90% interval: {gain.low:.2f} to {gain.high:.2f}"
        beside = width >= ROOMY
        notes: list[Line] = [[(text, "note")] for text in (_pooled_text(gain), "" if beside else spread) if text]
        return [
            _answer(gain, spread if beside else "", width, glyphs),
            _sides(gain, engine_now, width),
            [("  ", "text"), *fit_items(notes, width - 2, gap=3)] if notes else [],
        ]
    return _missing(state, gain, shape, engine_now, width, glyphs)


def _answer(gain: Gain, spread: str, width: int, glyphs: Glyphs) -> Line:
    where = f" at {requests_text(gain.requests)}"
    times: Line = [
        (f"on is {gain.ratio:.2f}{glyphs.times} off", "strong"),
        (where, "text"),
    ]
    items: list[Line] = [[(QUESTION, "strong")], [ANSWERS[gain.verdict]], times, [(spread, "text")]]
    return fit_items([item for item in items if item[0][0]], width)


def _sides(gain: Gain, now: float, width: int) -> Line:
    assert gain.on is not None
    assert gain.off is not None
    items: list[Line] = []
    for name, side in (("on", gain.on), ("off", gain.off)):
        items.append([(f"{name} ", "dim"), (f"{side.tok_s:.1f} tok/s", "text"), (f" ({_basis(side, now)})", "dim")])
    return [("  ", "text"), *fit_items(items, width - 2, gap=3)]


def _basis(side: Side, now: float) -> str:
    """``128 steps, now``: on how much a speed rests, and how long ago that was."""
    return f"{side.steps} steps, {when_text(now - side.t)}"


def when_text(age: float) -> str:
    return "now" if age < FRESH_S else f"{age_text(age)} ago"


def _pooled_text(gain: Gain) -> str:
    if gain.pooled is None or gain.pooled == (gain.requests, gain.requests):
        return ""
    low, high = gain.pooled
    span = f"{low} to {high}" if low != high else str(low)
    return f"pooled from {span} requests"


def _ratio_words(gain: Gain, now: float, glyphs: Glyphs) -> list[Word]:
    verdict = {Verdict.WINNING: "winning", Verdict.LOSING: "losing"}.get(gain.verdict, "too close to tell")
    return [
        (f"at {requests_text(gain.requests)} on was {gain.ratio:.2f}{glyphs.times} off", "text"),
        (f" ({gain.low:.2f} to {gain.high:.2f}, {verdict}), {when_text(gain.age(now) or 0.0)}", "dim"),
    ]


def _unknown(why: str, what: str) -> list[Line]:
    answer: Line = [(QUESTION, "strong"), ("  ", "text"), UNKNOWN, ("  ", "text"), (why, "text")]
    return [answer, [(f"  {what}", "note")] if what else [], []]


def _advice(state: SessionState, text: str) -> str:
    """What to do; nothing in a recording, where nobody can."""
    return "" if state.is_replay else text


def _missing(state: SessionState, gain: Gain, shape: Shape, now: float, width: int, glyphs: Glyphs) -> list[Line]:
    """Which side is missing, and how to get it."""
    name = state.hello.name if state.hello else "NAME"
    at = f"at {requests_text(gain.requests)}"
    lacks = [(kind, count) for kind, side, count in _side_counts(gain) if side is None]
    if len(lacks) == 2 and any(count for _, count in lacks):
        counts = ", ".join(f"{count} {kind}" for kind, count in lacks)
        lines = _unknown(f"few steady steps {at}", f"so far {counts} of the {FEWEST} of each kind that it takes")
    elif len(lacks) == 2:
        lines = _unknown(f"no steady step {at} yet", "it takes steps in which no request begins or ends")
    else:
        kind, count = lacks[0]
        seen = f"{count} of {FEWEST} {kind} steps" if count else f"no {kind} step"
        value = "off" if kind == "plain" else "on"
        side = gain.on or gain.off
        seconds = max(2, round(2 * FEWEST * gain.requests / side.tok_s)) if side else 2
        tell = f"to know: press s and choose {value} for some {seconds} s"
        command = f"specwb set {name} spec={value} --for {seconds + 3}s"
        if len(tell) + len(command) + 8 <= width:
            tell += f", or: {command}"
        lines = _unknown(f"{seen} {at} yet", _advice(state, tell))
    nearest = _nearest(state, gain.requests, shape, now)
    if nearest is not None:
        lines[2] = [("  ", "text"), *_ratio_words(nearest, now, glyphs)]
    elif gain.on or gain.off:
        kind, side = ("on", gain.on) if gain.on else ("off", gain.off)
        assert side is not None
        lines[2] = [("  ", "text"), (f"{kind} ", "dim"), (f"{side.tok_s:.1f} tok/s", "text")]
        lines[2] = [*lines[2], (f" ({_basis(side, now)})", "dim")]
    return lines if lines[1] else [lines[0], lines[2], []]


def _side_counts(gain: Gain) -> list[tuple[str, Side | None, int]]:
    return [("speculating", gain.on, gain.on_steps), ("plain", gain.off, gain.off_steps)]


def _nearest(state: SessionState, requests: int, shape: Shape, now: float) -> Gain | None:
    """The known gain at the nearest other load."""
    known = [gain for gain in state.gains.by_load(shape, now) if gain.ratio is not None]
    return min(known, key=lambda gain: abs(gain.requests - requests), default=None)


def gain_table(state: SessionState, now: float, rows: int, glyphs: Glyphs) -> list[Line]:
    """Header and up to ``rows`` loads, those around the load of now; empty while nothing was measured."""
    engine_now = state.engine_now(now)
    shape = shape_of(state)
    gains = state.gains.by_load(shape, engine_now) if shape else []
    if not gains or rows < 1:
        return []
    load = state.gains.load(engine_now)
    if len(gains) > rows:
        middle = load if load is not None else gains[-1].requests
        gains = sorted(sorted(gains, key=lambda gain: abs(gain.requests - middle))[:rows], key=lambda g: g.requests)
    header = " " + "".join(title.rjust(size) for title, size in TABLE_COLUMNS) + "   measured"
    return [[(header, "dim")], *(_table_row(gain, gain.requests == load, engine_now, glyphs) for gain in gains)]


def _table_row(gain: Gain, is_now: bool, now: float, glyphs: Glyphs) -> Line:
    cells = [
        str(gain.requests),
        f"{gain.on.tok_s:.1f}" if gain.on else "-",
        f"{gain.off.tok_s:.1f}" if gain.off else "-",
        f"{gain.ratio:.2f}{glyphs.times}" if gain.ratio is not None else "-",
        f"{gain.low:.2f} to {gain.high:.2f}" if gain.ratio is not None else "",
    ]
    role = {Verdict.WINNING: "good", Verdict.LOSING: "bad"}.get(gain.verdict, "text")
    roles = ["strong", "text", "text", role, "text"]
    words: list[Word] = [("›" if is_now and glyphs.axis != "|" else ">" if is_now else " ", "strong")]
    for (_, size), cell, role in zip(TABLE_COLUMNS, cells, roles, strict=True):
        words.append((fit(cell, size, "right"), role))
    age = gain.age(now)
    if age is not None:
        words.append((f"   {when_text(age)}", "dim"))
    else:
        words.append(("   no plain steps" if gain.off is None else "   no speculating steps", "dim"))
    return words
