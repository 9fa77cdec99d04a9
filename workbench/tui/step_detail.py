"""Everything one step says, as lines for the detail pane: the decision, what is wrong, then stage by stage. Pure."""

from __future__ import annotations

from probes.events import AlertEvent, StepEvent
from workbench.bar import bar
from workbench.cell_text import fit, wrap
from workbench.tui.line_panel import Line, Word, fit_items, mode_role
from workbench.tui.plan_alerts import alert_words
from workbench.tui.step_trace import Stage, has_mismatch, mismatch_words, others_set_by, stages
from workbench.tui.timeline import Entry, Mark

LABEL = 10
BAR = 8
TIME = 7
"""Cells of the milliseconds; the bar follows."""


def _labelled(label: str, text: str, width: int, role: str = "text", label_role: str = "dim") -> list[Line]:
    """A label in its own column, the text wrapped beside it."""
    parts = wrap(text, max(10, width - LABEL))
    return [
        [(f" {label if index == 0 else '':<{LABEL - 1}}", label_role), (part, role)] for index, part in enumerate(parts)
    ]


def _stage_lines(stage: Stage, longest: int, width: int) -> list[Line]:
    """The stage's name, what it had, its time as a bar; below: who set what."""
    room = max(10, width - LABEL - TIME - BAR - 2)
    first, *more = wrap(stage.what, room)
    role = "bad" if stage.is_wrong else "text"
    name = f" {stage.name}{' !' if stage.is_wrong else ''}"
    time = "·" if stage.cpu_us is None else f"{stage.cpu_us / 1000:.1f}"
    head: list[Word] = [
        (fit(name, LABEL), "bad" if stage.is_wrong else "strong"),
        (fit(first, room), role),
        (fit(time, TIME, "right") + " ", "dim"),
        (bar((stage.cpu_us or 0) / longest if longest else 0.0, BAR), "note"),
    ]
    lines: list[Line] = [head, *([(" " * LABEL, "text"), (part, role)] for part in more)]
    if stage.set_by:
        lines += _labelled("", "set " + ", ".join(stage.set_by), width, "bad" if stage.is_wrong else "dim")
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
    total = f"{sum(step.cpu_us.values()) / 1000:.1f} ms by the CPU's clock" if step.cpu_us else "not measured"
    since = f"; began {step.round_us / 1000:.1f} ms after the step before" if step.round_us else ""
    lines += _labelled("took", total + since, width)
    longest = max(step.cpu_us.values(), default=0)
    for stage in stages(step):
        lines += _stage_lines(stage, longest, width)
    if step.gpu_us:
        times = "  ".join(f"{stage} {us / 1000:.1f}" for stage, us in step.gpu_us.items())
        lines += _labelled("gpu ms", f"{times} (by the GPU's clock)", width)
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
