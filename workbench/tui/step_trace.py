"""The trace of one step, stage by stage: what each stage had, which code set it, and where two counts differ. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from probes.events import StepEvent
from probes.gpu_time import IDLE
from workbench.step_words import counted, missed_graph, padding, slots_agree, widths_text

STAGE_OF = {
    "decision": "decide",
    "mode": "decide",
    "widths": "plan",
    "slots_expected": "plan",
    "slots_reserved": "reserve",
    "pages_allocated": "reserve",
    "slots_written": "run",
    "shapes": "run",
}
"""Quantity of a step's ``trace`` -> the stage that has it."""
UNKNOWN = "the event does not say by whom"


@dataclass(frozen=True)
class Stage:
    """One stage of a step."""

    name: str
    what: str
    set_by: tuple[str, ...]
    """``quantity by module:function``."""
    cpu_us: int | None
    """Microseconds by the CPU's clock; None when it was not measured or did not run."""
    gpu_us: int | None = None
    """The same by the GPU's clock, CUDA events."""
    is_wrong: bool = False
    """A count of this stage differs from the one before it."""


def setter_of(step: StepEvent, quantity: str) -> str:
    """``module:function`` that set a quantity; the engine may put a reason before it."""
    return step.trace.get(quantity, "").rpartition(" ")[2]


def shapes_text(step: StepEvent) -> str:
    """``input_ids [160]  seq_lens [10]``: the shapes that were given."""
    names = ("input_ids", "seq_lens", "extend_lens", "out_cache_loc", "hidden_states", "padded_bucket")
    given = [(name, getattr(step.shapes, name)) for name in names]
    return "  ".join(f"{name} [{','.join(map(str, shape))}]" for name, shape in given if shape)


def acceptance_text(step: StepEvent) -> str:
    """How the step's drafts fared."""
    if not step.verified:
        return f"nothing was verified; emitted {step.emitted}"
    by_position = "/".join(map(str, step.correct_by_position))
    return (
        f"{step.correct_drafts} of {step.proposed} drafts correct (by depth {by_position}) "
        f"in {step.verified} verifies; emitted {step.emitted} with bonus, discarded {step.discarded}"
    )


def tree_text(step: StepEvent) -> str:
    """The outline of the drafted trees; that there are none, in a step that did not speculate."""
    info = step.spec_info
    if info is None:
        return "nothing is drafted in this step"
    shape = "a chain" if info.topk == 1 else f"a tree, {info.topk} children a node"
    return f"{shape}, {info.steps} deep, {info.draft_tokens} nodes a request with the root ({info.algorithm})"


def graph_text(step: StepEvent) -> str:
    """``graph verify/16x4 hit, 6 of its 16 rows padding``; what ran instead where there is none."""
    if step.graph is None:
        return "eager"
    found = padding(step)
    pad = "" if found is None else f", {found[0]} of its {found[1]} rows padding" if found[0] else ", no row padding"
    if missed_graph(step):
        return f"graph {step.graph} MISS: not captured, so eager{pad}"
    return f"graph {step.graph} hit{pad}"


SOMETIMES = {
    "prefill": "the target's forward over the prompts' chunks, and the decodes of a mixed step",
    "wait": "the host waits for the step's result",
    "commit": "what it gave is handed on: tokens, stops, slots",
}
"""Stages that stand here only in the steps that have them."""


def stages(step: StepEvent) -> list[Stage]:
    """All stages in the order they ran. Under overlap the host's part of a step's end comes a step later."""
    asked = [counted(step.requests, "decode request")]
    if step.prefill_tokens:
        asked.append(f"{counted(step.prefill_requests, 'prompt')} ({counted(step.prefill_tokens, 'token')})")
    plan_parts = [widths_text(step)] if step.widths else []
    plan_parts += [f"{step.prefill_tokens} prompt tokens"] if step.prefill_tokens else []
    debt = f"{step.draft_lag} tokens behind, {step.draft_debt_bytes / 1024:.0f} KiB of hidden states held"
    replanned = ", planned a second time" if step.replanned else ""
    overrun = f"; {counted(step.overrun, 'request')} had ended before" if step.overrun else ""
    what = {
        "schedule": f"{', '.join(asked)}; {step.queue} wait",
        "decide": f"{step.mode.upper()} because {step.reason}",
        "plan": f"{step.slots_expected} slots expected: {' + '.join(plan_parts) or 'nothing'}{replanned}",
        "reserve": f"{step.slots_reserved} slots reserved, {step.pages_allocated} new pages",
        "draft": tree_text(step),
        "run": f"{step.slots_written} rows written, {graph_text(step)}; {shapes_text(step)}",
        "prefill": SOMETIMES["prefill"],
        "accept": acceptance_text(step),
        "sync": debt if step.draft_lag or step.draft_debt_bytes else "the draft's KV is up to date",
        "wait": SOMETIMES["wait"],
        "commit": SOMETIMES["commit"] + overrun,
        "publish": f"{step.slots_freed} slots freed, {step.finished} requests ended",
    }
    wrong = {
        "reserve": step.slots_reserved != step.slots_expected,
        "run": step.slots_written != step.slots_reserved or _shapes_differ(step),
    }
    timed = {**step.cpu_us, **step.gpu_us}
    # A stage that this version does not know still has its time.
    names = [name for name in what if name in timed or name not in SOMETIMES]
    names += [name for name in timed if name not in what and name != IDLE]
    return [
        Stage(
            name,
            what.get(name, ""),
            _set_by(step, name),
            step.cpu_us.get(name),
            step.gpu_us.get(name),
            wrong.get(name, False),
        )
        for name in names
    ]


def _set_by(step: StepEvent, stage: str) -> tuple[str, ...]:
    return tuple(
        f"{quantity} by {setter_of(step, quantity)}" for quantity in step.trace if STAGE_OF.get(quantity) == stage
    )


def others_set_by(step: StepEvent) -> tuple[str, ...]:
    """Quantities of the trace that belong to no stage that we know."""
    return tuple(f"{quantity} by {code}" for quantity, code in step.trace.items() if quantity not in STAGE_OF)


def _shapes_differ(step: StepEvent) -> bool:
    rows, slots = step.shapes.input_ids[:1], step.shapes.out_cache_loc[:1]
    return bool(rows and slots) and rows != slots


def mismatch_words(step: StepEvent) -> list[str]:
    """For every two counts that differ: both, who made each, and what they are a request."""
    counts = (
        ("the plan expects", step.slots_expected, "slots_expected"),
        ("the allocator reserved", step.slots_reserved, "slots_reserved"),
        ("the runner wrote", step.slots_written, "slots_written"),
    )
    words: list[str] = []
    for (who, count, name), (next_who, next_count, next_name) in pairwise(counts):
        if count != next_count:
            by, next_by = setter_of(step, name) or UNKNOWN, setter_of(step, next_name) or UNKNOWN
            each = _a_request(step, count, next_count)
            words.append(f"{who} {count} slots ({by}), {next_who} {next_count} ({next_by}){each}")
    if _shapes_differ(step):
        rows, slots = step.shapes.input_ids[0], step.shapes.out_cache_loc[0]
        words.append(f"the forward got {rows} rows (input_ids) and {slots} slots to write them to (out_cache_loc)")
    return words


def _a_request(step: StepEvent, *counts: int) -> str:
    """``: 1 and 16 a request``, where the step has nothing but decode requests and the counts divide."""
    if step.prefill_tokens or not step.requests or any(count % step.requests for count in counts):
        return ""
    each = " against ".join(str(count // step.requests) for count in counts)
    return f": {each} a request, for {step.requests} requests"


def has_mismatch(step: StepEvent) -> bool:
    return not slots_agree(step) or _shapes_differ(step)
