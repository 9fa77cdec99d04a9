"""Everything one step says, as lines for the detail pane. Pure."""

from __future__ import annotations

from probes.events import StepEvent
from workbench.cell_text import wrap
from workbench.step_words import slots_agree, widths_text
from workbench.tui.line_panel import Line, fit_items
from workbench.tui.timeline import Entry, Mark

LABEL = 9


def _labelled(label: str, text: str, width: int, role: str = "text") -> list[Line]:
    """A label in its own column, the text wrapped beside it."""
    parts = wrap(text, max(10, width - LABEL))
    return [[(f" {label if index == 0 else '':<{LABEL - 1}}", "dim"), (part, role)] for index, part in enumerate(parts)]


def _stages(times: dict[str, int]) -> str:
    return "  ".join(f"{stage} {us / 1000:.1f}" for stage, us in times.items())


def shapes_text(step: StepEvent) -> str:
    """``input_ids [160]  seq_lens [10]``: the shapes that were given."""
    names = ("input_ids", "seq_lens", "extend_lens", "out_cache_loc", "hidden_states", "padded_bucket")
    given = [(name, getattr(step.shapes, name)) for name in names]
    return "  ".join(f"{name} [{','.join(map(str, shape))}]" for name, shape in given if shape)


def acceptance_text(step: StepEvent) -> str:
    """How the step's drafts fared."""
    if not step.verified:
        return f"n/a, nothing was verified; emitted {step.emitted}"
    by_position = "/".join(map(str, step.correct_by_position))
    return (
        f"{step.correct_drafts} of {step.proposed} drafts correct (by depth {by_position}) "
        f"in {step.verified} verifies; emitted {step.emitted} with bonus, discarded {step.discarded}"
    )


def step_lines(step: StepEvent, width: int) -> list[Line]:
    """The pane's lines for a step, each within ``width`` cells."""
    mode = step.mode.upper()
    head: list[Line] = [[(f" step {step.step} ", "strong"), (mode, step.mode)]]
    if step.simulated:
        head.append([("SIMULATED", "warn")])
    if step.spec_info:
        info = step.spec_info
        head.append([(f"{info.algorithm} {info.steps}/{info.topk}/{info.draft_tokens}", "dim")])
    head.append([(f"knobs epoch {step.knob_epoch}", "dim")])
    lines: list[Line] = [fit_items(head, width)]
    lines += _labelled("why", f"{step.reason}: {step.reason_detail}" if step.reason_detail else step.reason, width)
    slots = (
        f"expected {step.slots_expected} (plan)  reserved {step.slots_reserved} (allocator)  "
        f"written {step.slots_written} (runner)  freed {step.slots_freed}  pages {step.pages_allocated}"
    )
    lines += _labelled(
        "slots" if slots_agree(step) else "SLOTS !", slots, width, "text" if slots_agree(step) else "bad"
    )
    if shapes_text(step):
        lines += _labelled("shapes", shapes_text(step), width)
    graph = "" if step.graph is None else f"  graph {step.graph} {'hit' if step.graph_hit else 'MISS'}"
    lines += _labelled("width", f"{widths_text(step)} (tokens × requests){graph}", width)
    lines += _labelled("accept", acceptance_text(step), width)
    if step.cpu_us:
        lines += _labelled("cpu ms", _stages(step.cpu_us), width)
    if step.gpu_us:
        lines += _labelled("gpu ms", _stages(step.gpu_us), width)
    if step.draft_lag or step.draft_debt_bytes:
        debt = f"{step.draft_lag} tokens behind, {step.draft_debt_bytes / 1024:.0f} KiB of hidden states held"
        lines += _labelled("draft", debt, width)
    for quantity, code in step.trace.items():
        lines += _labelled("set by", f"{quantity} ← {code}", width)
    return lines


def entry_lines(entry: Entry | None, width: int) -> list[Line]:
    """The pane's lines for whatever row is selected."""
    if entry is None:
        return [[(" no step selected", "dim")]]
    if isinstance(entry, Mark):
        return [[(f" {entry.kind.upper()} ", "strong")], *_labelled("", entry.text, width)]
    return step_lines(entry, width)
