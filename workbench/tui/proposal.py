"""A knob change that a person is asked to confirm: old → new, and what it will do, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from probes.knobs import KNOBS, Knobs
from workbench.step_words import changes_text
from workbench.tui.session_state import SessionState


@dataclass(frozen=True)
class Proposal:
    """What would change. ``old`` travels as the values expected to be found, so nobody's newer change is undone."""

    old: dict[str, Any]
    new: dict[str, Any]
    consequences: tuple[str, ...]

    @property
    def title(self) -> str:
        """``spec auto → off``."""
        return changes_text(self.old, self.new)

    @property
    def is_change(self) -> bool:
        return self.old != self.new


def propose_spec(state: SessionState, mode: str) -> Proposal:
    """Turn speculation to ``auto``, ``on`` or ``off``."""
    knobs = state.knob_values or Knobs()
    words = {
        "off": [
            "From the next step on every request decodes plainly: one token a step, no draft, no verify.",
            f"The draft stays loaded and its KV follows ({knobs.draft_sync} sync), so it can resume at any step.",
        ],
        "on": [
            "From the next step on every decode step speculates, however many requests run.",
            f"The threshold ({knobs.threshold}) is ignored; short memory can still force a plain step.",
        ],
        "auto": [_threshold_words(knobs.threshold), _now_words(state, knobs.threshold)],
    }[mode]
    if state.draft_loaded is False and mode != "off":
        words.append("No draft is loaded, so the engine cannot speculate and may refuse.")
    return Proposal({"spec": state.knobs.get("spec")}, {"spec": mode}, (*(w for w in words if w), _same_text(state)))


def propose_threshold(state: SessionState, threshold: int) -> Proposal:
    """Move the threshold, kept within the knob's limits."""
    knob = KNOBS["threshold"]
    threshold = max(knob.low, min(threshold, knob.high))
    words = [_threshold_words(threshold), _now_words(state, threshold)]
    if state.knobs.get("spec") in ("on", "off"):
        words = [f"No effect while spec={state.knobs['spec']}; it decides once spec is auto."]
    return Proposal({"threshold": state.knobs.get("threshold")}, {"threshold": threshold}, tuple(w for w in words if w))


def _threshold_words(threshold: int) -> str:
    if threshold == 0:
        return "Threshold 0: never speculates."
    return f"Speculates while at most {threshold} requests decode in the step; more run plain."


def _now_words(state: SessionState, threshold: int) -> str:
    step = state.last_step
    if step is None or state.is_idle or not step.requests:
        return ""
    return f"Now {step.requests} decode: {'speculating' if step.requests <= threshold else 'plain'}."


def _same_text(state: SessionState) -> str:
    if state.is_half_precision:
        return "Running requests go on; in half precision their text may differ at near-ties."
    return "Running requests go on with the same text."
