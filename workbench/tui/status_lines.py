"""The status part of the screen, in words: who, which mode, how well, how full, and what was lost. Pure."""

from __future__ import annotations

from probes.simulation import WORD
from workbench.cell_text import fit, width_of
from workbench.time_text import age_text
from workbench.tui.gpu_lines import status_items
from workbench.tui.hello_facts import is_half_precision
from workbench.tui.line_panel import Line, Word, fit_items, spread
from workbench.tui.session_state import Connection, SessionState
from workbench.tui.windows import Acceptance

CONNECTION_ROLES = {
    Connection.WAITING: "idle",
    Connection.LIVE: "good",
    Connection.IDLE: "idle",
    Connection.BUSY: "warn",
    Connection.STALE: "bad",
    Connection.GONE: "bad",
}
# Reason code -> why a loaded draft does not work at the moment.
WHY_PLAIN = {"above_threshold": "load", "threshold_hold": "load, holds", "memory": "no memory for the verify"}
MODE_ROLES = {"SPEC": "spec", "PLAIN": "plain", "PREFILL": "prefill", "MIXED": "mixed"}


def accept_text(acceptance: Acceptance) -> str:
    """``2.41``, or that there is none and how old the last one is: never 0, never a frozen number that looks live."""
    if acceptance.value is not None:
        return f"{acceptance.value:.2f}"
    if acceptance.last is None:
        return "n/a"
    return f"n/a (last {acceptance.last:.2f}, {age_text(acceptance.age)} ago)"


def connection_words(state: SessionState, now: float) -> list[Word]:
    """The line's state in one word, with what makes it worth reading."""
    connection = state.connection(now)
    more = ""
    if connection is Connection.STALE:
        more = f" nothing heard for {age_text(state.silent_for(now))}"
    elif connection is Connection.GONE:
        more = f" {state.gone_because}"
    elif connection is Connection.BUSY and state.heartbeat:
        more = f" in {state.heartbeat.stage} for {age_text(state.stage_seconds(now))}"
    gap: list[Word] = [("GAP", "badge:bad"), (" ", "text")] if state.lost_recently(now) else []
    return [*gap, (f" {connection.value}{more} ", "badge:" + CONNECTION_ROLES[connection])]


def loss_words(state: SessionState) -> list[Word]:
    """What did not reach this screen, and how often the engine started anew; ``lost`` is always there."""
    words: list[Word] = [("lost ", "dim"), (str(state.lost_total), "bad" if state.lost_total else "text")]
    counts = (
        ("dropped", state.dropped, "bad"),
        ("unreadable", state.malformed, "bad"),
        ("restarts", state.restarts, "warn"),
    )
    for label, count, role in counts:
        if count:
            words += [(f"  {label} ", "dim"), (str(count), role)]
    return words


def title_line(state: SessionState, name: str, now: float, width: int) -> list[Word]:
    """specwb, the engine's name, model, precision, device and scheduler; the connection at the right edge."""
    right = [*loss_words(state), ("  ", "text"), *connection_words(state, now)]
    items: list[Line] = [[("specwb", "dim")], [(name, "strong")]]
    if state.hello:
        model = state.hello.model
        items += [[(str(model.get("name", "?")), "text")]]
        items += [[(str(model[key]), "dim")] for key in ("dtype", "device") if key in model]
        if state.scheduler:
            items.append([(f"{state.scheduler} scheduler" if width >= 100 else state.scheduler, "dim")])
    room = width - sum(len(text) for text, _ in right) - 1
    return spread(fit_items(items, room), right, width)


def speculation_words(state: SessionState) -> list[Word]:
    """Is a draft loaded, and if it does not work, why not."""
    if state.draft_loaded is None:
        return []
    if not state.draft_loaded:
        return [("no draft loaded: cannot speculate", "warn")]
    if state.knobs.get("spec") == "off":
        return [("draft loaded, speculation off", "warn"), (" (spec=off)", "dim")]
    if state.knobs.get("spec") == "auto" and state.knobs.get("threshold") == 0:
        return [("draft loaded, speculation off", "warn"), (" (threshold=0)", "dim")]
    reason = state.last_step.reason if state.last_step and not state.is_idle else ""
    if reason in WHY_PLAIN:
        return [("draft loaded, plain now", "warn"), (f" ({WHY_PLAIN[reason]})", "dim")]
    return [("draft loaded", "text")]


def mode_line(state: SessionState, now: float, width: int) -> list[Word]:
    """The mode of now, and the knobs that decide it."""
    word = state.mode_word(now)
    items: list[Line] = [[(f" {word} ", "badge:" + MODE_ROLES.get(word, "idle"))]]
    knobs = state.knobs
    if knobs:
        items.append([("spec ", "dim"), (str(knobs.get("spec", "?")), "strong")])
    items.append(speculation_words(state))
    if knobs:
        items.append([("threshold ", "dim"), (str(knobs.get("threshold", "?")), "strong")])
        if state.knob_values:
            items.append([(f"(resumes at {state.knob_values.resume_at})", "dim")])
        tree = "/".join(str(knobs.get(name, "?")) for name in ("steps", "topk", "draft_tokens"))
        items.append([("steps/topk/tokens ", "dim"), (tree, "text")])
        items.append([("sync ", "dim"), (str(knobs.get("draft_sync", "?")), "text")])
        items.append([("epoch ", "dim"), (str(state.knob_epoch), "text")])
    return fit_items([item for item in items if item], width)


def pool_words(name: str, used: int, total: int, long: bool) -> list[Word]:
    """How full one KV pool is; loud from 85% on."""
    share = 100 * used / total if total else 0.0
    role = "bad" if share >= 95 else "warn" if share >= 85 else "text"
    return [(f"{name} " if name else "", "dim"), (f"{share:.0f}%", role), (f" {used}/{total}" if long else "", "dim")]


def numbers_line(state: SessionState, now: float, width: int) -> list[Word]:
    """Accept length, speed, load, and both KV pools."""
    stale = state.connection(now) in (Connection.STALE, Connection.GONE, Connection.WAITING)
    rate = None if stale else state.tokens_per_second(now)
    acceptance = state.acceptance(now)
    items: list[Line] = [
        [("accept ", "dim"), (accept_text(acceptance), "strong" if acceptance.value is not None else "idle")],
        [(f"{rate:.1f}" if rate is not None else "-", "strong"), (" tok/s", "dim")],
    ]
    step = state.last_step
    if step:
        running = "-" if stale else "0" if state.is_idle else str(step.requests)
        queue = "-" if stale else "0" if state.is_idle else str(step.queue)
        items.append([("run ", "dim"), (running, "text"), (" queue ", "dim"), (queue, "text")])
        long = width >= (130 if state.has_gpu else 110)
        # Where it is narrow the first pool, the target's, goes without its name.
        names = [pool if index or width >= 100 else "" for index, pool in enumerate(step.kv)]
        pools = [pool_words(name, use.used, use.total, long) for name, use in zip(names, step.kv.values(), strict=True)]
        if pools:
            items.append([("KV", "dim"), *(word for pool in pools for word in ((" ", "dim"), *pool))])
    items += status_items(state, now)
    return fit_items(items, width)


def notes_line(state: SessionState, width: int) -> list[Word]:
    """What a reader must know to read the rest rightly."""
    items: list[Line] = []
    what = state.simulation
    if what:
        items.append([(f" {WORD} ", "badge:warn")])  # alone, and first: it fits the narrowest screen
    if state.last_alert and state.last_alert.level != "info":
        alert = state.last_alert
        role = "bad" if alert.level == "error" else "warn"
        room = width - (len(WORD) + 4 if what else 0) - len(alert.level) - 1
        items.append([(f"{alert.level.upper()} ", role), (fit(alert.message, room).rstrip(), role)])
    if what:
        room = width - sum(width_of(text) for text, _ in fit_items(items, width)) - 2
        items.append([(fit(what, room).rstrip(), "note")])
    if state.hello and is_half_precision(state.hello):
        dtype = state.hello.model.get("dtype")
        items.append([(f"{dtype}: text with spec on and off may differ at near-ties", "note")])
    return fit_items(items, width)


def decision_line(state: SessionState, width: int) -> list[Word]:
    """The newest step's decision and its reason, in full as far as the line goes."""
    step = state.last_step
    if step is None:
        live = "no step since this screen opened: send the engine a request"
        return [("no step up to this place of the recording" if state.is_replay else live, "dim")]
    mode = step.mode.upper()
    words: list[Word] = [
        ("step ", "dim"),
        (str(step.step), "text"),
        (" runs ", "dim"),
        (mode, MODE_ROLES.get(mode, "text")),
        (" because ", "dim"),
        (step.reason, "strong"),
    ]
    if step.reason_detail:
        room = width - sum(width_of(text) for text, _ in words)
        words.append((fit(f": {step.reason_detail}", room).rstrip(), "text"))
    return words


def status_lines(state: SessionState, name: str, now: float, width: int) -> list[Line]:
    """All five lines, each at most ``width`` cells."""
    return [
        title_line(state, name, now, width),
        mode_line(state, now, width),
        numbers_line(state, now, width),
        notes_line(state, width),
        decision_line(state, width),
    ]
