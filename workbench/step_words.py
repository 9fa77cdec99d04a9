"""A step's numbers as words that the CLI and the screen share. Pure."""

from __future__ import annotations

from typing import Any

from probes.duration import duration_text
from probes.events import KnobEvent, StepEvent
from probes.gpu_time import busy_us, idle_share


def counted(count: int, noun: str) -> str:
    """``1 step``, ``2 steps``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def slots_agree(step: StepEvent) -> bool:
    """The plan's, the allocator's and the runner's counts are one number."""
    return step.slots_expected == step.slots_reserved == step.slots_written


def widths_text(step: StepEvent) -> str:
    """``16×7 1×3``: tokens per decode request × requests that ran that wide, widest first."""
    wide_first = sorted(step.widths.items(), key=lambda item: -int(item[0]))
    return " ".join(f"{width}×{count}" for width, count in wide_first) or "·"


def all_slots_text(step: StepEvent) -> str:
    """The three counts: expected/reserved/written."""
    return f"{step.slots_expected}/{step.slots_reserved}/{step.slots_written}"


def slots_text(step: StepEvent) -> str:
    """One number while the three counts agree, else the plan's number and a mark: the reason then has all three."""
    return f"{step.slots_expected}{'' if slots_agree(step) else '!'}"


def took_text(step: StepEvent) -> str:
    """Milliseconds of the step's own stages; a dot when they were not measured.

    Not ``round_us``: that ends where the step starts, so it is the time of the step before.
    """
    return f"{sum(step.cpu_us.values()) / 1000:.1f}" if step.cpu_us else "·"


def gpu_text(step: StepEvent) -> str:
    """``gpu 5.0 ms, idle 5.8%``: by CUDA events, and how much of its time the GPU waited; empty without a GPU."""
    if not step.gpu_us:
        return ""
    idle = idle_share(step)
    return f"gpu {busy_us(step) / 1000:.1f} ms" + (f", idle {idle:.1%}" if idle is not None else "")


def missed_graph(step: StepEvent) -> bool:
    """The step looked for a captured graph and ran eager without it."""
    return step.graph_hit is False


def padding(step: StepEvent) -> tuple[int, int] | None:
    """(rows that belong to no request, rows of the graph's bucket); None when the step ran in no bucket."""
    if not step.shapes.padded_bucket:
        return None
    rows, *width = step.shapes.padded_bucket
    requests = step.widths.get(str(width[0]), step.requests) if width else step.requests
    return max(0, rows - requests), rows


def reason_text(step: StepEvent) -> str:
    """The decision's code, led by what went wrong with the step, followed by its words."""
    wrong = "" if slots_agree(step) else f"SLOTS {all_slots_text(step)} "
    replanned = "REPLANNED " if step.replanned else ""
    missed = f"GRAPH MISS {step.graph} " if missed_graph(step) else ""
    return f"{wrong}{replanned}{missed}{step.reason}" + (f": {step.reason_detail}" if step.reason_detail else "")


def changes_text(old: dict[str, Any], new: dict[str, Any]) -> str:
    """``threshold 4 → 2, spec auto → off``: what differs."""
    changed = [f"{name} {old.get(name, '?')} → {value}" for name, value in new.items() if old.get(name) != value]
    return ", ".join(changed) or "nothing changed"


def knob_text(event: KnobEvent) -> str:
    """``threshold 4 → 2, back to threshold 4 in 15 min``; ``threshold stays 2`` when a passing value was kept."""
    is_change = event.old != event.new
    words = changes_text(event.old, event.new)
    if not is_change:
        words = ", ".join(f"{name} stays {value}" for name, value in event.new.items())
    if event.revert_at is not None:
        back = ", ".join(f"{name} {value}" for name, value in event.back_to.items())
        words += f", back to {back} in {duration_text(event.revert_at - event.t)}"
    return words
