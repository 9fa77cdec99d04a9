"""Everything one step says, as lines for the detail pane: the decision, what is wrong, then stage by stage. Pure."""

from __future__ import annotations

from probes.events import AlertEvent, StepEvent
from probes.gpu_time import IDLE, busy_us, idle_share
from workbench.bar import bar
from workbench.cell_text import fit, wrap
from workbench.tui.line_panel import Line, Word, fit_items, mode_role
from workbench.tui.plan_alerts import alert_words
from workbench.tui.step_trace import Stage, has_mismatch, mismatch_words, others_set_by, stages
from workbench.tui.timeline import Entry, Mark

LABEL = 10
BAR = 8
TIME = 7
"""Cells of the milliseconds by one clock; the bar follows."""
NARROW = 20
"""Cells that the words of a stage need before a bar gets any."""


def _labelled(label: str, text: str, width: int, role: str = "text", label_role: str = "dim") -> list[Line]:
    """A label in its own column, the text wrapped beside it."""
    parts = wrap(text, max(10, width - LABEL))
    return [
        [(f" {label if index == 0 else '':<{LABEL - 1}}", label_role), (part, role)] for index, part in enumerate(parts)
    ]


def _time(us: int | None, digits: int) -> str:
    return "·" if us is None else f"{us / 1000:.{digits}f}"


def _columns(width: int, on_gpu: bool) -> tuple[int, int]:
    """(cells for what a stage had, cells of its bar); a narrow pane with two clocks has no bars."""
    room = width - LABEL - TIME * (1 + on_gpu) - BAR - 2
    return (room, BAR) if room >= NARROW or not on_gpu else (max(10, room + BAR + 1), 0)


def _clock_line(width: int) -> Line:
    """Above the stages where there are two clocks: which column is by which. The bars are the GPU's."""
    room, _ = _columns(width, True)
    return [(" " * (LABEL + room) + f"{'CPU ms':>{TIME}}{'GPU ms':>{TIME}}", "dim")]


def _stage_lines(stage: Stage, longest: int, width: int, on_gpu: bool) -> list[Line]:
    """The stage's name, what it had, its time by each clock and as a bar; below: who set what."""
    room, bar_cells = _columns(width, on_gpu)
    room = max(10, room)
    first, *more = wrap(stage.what, room)
    role = "bad" if stage.is_wrong else "text"
    name = f" {stage.name}{' !' if stage.is_wrong else ''}"
    times = [stage.cpu_us, stage.gpu_us] if on_gpu else [stage.cpu_us]
    head: list[Word] = [
        (fit(name, LABEL), "bad" if stage.is_wrong else "strong"),
        (fit(first, room), role),
        ("".join(fit(_time(us, 1 + on_gpu), TIME, "right") for us in times) + " ", "dim"),
        (bar((times[-1] or 0) / longest if longest else 0.0, bar_cells), "note"),
    ]
    lines: list[Line] = [head, *([(" " * LABEL, "text"), (part, role)] for part in more)]
    if stage.set_by:
        lines += _labelled("", "set " + ", ".join(stage.set_by), width, "bad" if stage.is_wrong else "dim")
    return lines


def _took_lines(step: StepEvent, width: int) -> list[Line]:
    """How long it took by which clock, when it began, and how long the GPU had waited for it."""
    total = f"{sum(step.cpu_us.values()) / 1000:.1f} ms by the CPU's clock" if step.cpu_us else "not measured"
    if step.gpu_us:
        waited_us = step.cpu_us.get("wait")
        total += f", {waited_us / 1000:.1f} of them waiting for the GPU" if waited_us is not None else ""
        total += f"; {busy_us(step) / 1000:.1f} ms on the GPU, by CUDA events"
    since = f"; began {step.round_us / 1000:.1f} ms after the step before" if step.round_us else ""
    lines = _labelled("took", total + since, width)
    share = idle_share(step)
    if share is not None:
        waited = f"the GPU waited {step.gpu_us[IDLE] / 1000:.2f} ms for this step: {share:.1%} of its time"
        lines += _labelled("idle", f"{waited} since the end of the step before", width)
    elif IDLE in step.gpu_us:
        lines += _labelled("idle", "the engine had no work before this step", width)
    return lines


def step_lines(step: StepEvent, width: int, alert: AlertEvent | None = None) -> list[Line]:
    """The pane's lines for a step, each within ``width`` cells; ``alert``: its first plan did not hold."""
    mode = step.mode.upper()
    head: list[Line] = [[(f" step {step.step} ", "strong"), (mode, mode_role(mode))]]
    if step.simulated:
        head.append([("SIMULATED", "warn")])
    if step.spec_info:
        info = step.spec_info
        head.append([(f"{info.algorithm} {info.steps}/{info.topk}/{info.draft_tokens}", "dim")])
    head += [[(f"knobs epoch {step.knob_epoch}", "dim")], [(f"boot {step.boot_id}", "dim")]]
    lines: list[Line] = [fit_items(head, width)]
    if has_mismatch(step):
        for words in mismatch_words(step):
            lines += _labelled("MISMATCH", words, width, "bad", "bad")
    if alert is not None:
        then = "; then it was planned once more, and ran as below" if step.replanned else ""
        lines += _labelled("MISMATCH", alert_words(alert, step.requests) + then, width, "bad", "bad")
    elif step.replanned:
        words = "two counts of its first plan differed (the alert is no longer known); it was planned once more"
        lines += _labelled("REPLAN", words, width, "warn", "warn")
    lines += _labelled("why", f"{step.reason}: {step.reason_detail}" if step.reason_detail else step.reason, width)
    lines += _took_lines(step, width)
    on_gpu = bool(step.gpu_us)
    if on_gpu:
        lines.append(_clock_line(width))
    shown = stages(step)
    longest = max(((stage.gpu_us if on_gpu else stage.cpu_us) or 0 for stage in shown), default=0)
    for stage in shown:
        lines += _stage_lines(stage, longest, width, on_gpu)
    for words in others_set_by(step):
        lines += _labelled("also", f"set {words}", width, "dim")
    return lines


def entry_lines(entry: Entry | None, width: int, alert: AlertEvent | None = None) -> list[Line]:
    """The pane's lines for whatever row is selected."""
    if entry is None:
        return [[(" no step selected", "dim")]]
    if isinstance(entry, Mark):
        lines: list[Line] = [[(f" {entry.kind.upper()} ", "strong")], *_labelled("", entry.text, width)]
        if entry.alert is not None and entry.alert.code == "plan_mismatch":
            lines += _labelled("MISMATCH", alert_words(entry.alert), width, "bad", "bad")
        return lines
    return step_lines(entry, width, alert)
