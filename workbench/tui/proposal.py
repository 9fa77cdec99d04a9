"""A knob change that a person is asked to confirm: old → new, and what it will do, in words. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from probes.duration import duration_text
from probes.events import KnobEvent
from probes.knobs import KNOBS, KnobError, Knobs, apply_changes
from workbench.step_words import changes_text
from workbench.tui.hello_facts import is_half_precision
from workbench.tui.session_state import SessionState

WHY = "from the attached screen"
DURATIONS: tuple[float | None, ...] = (None, 300.0, 900.0, 3600.0)
"""Seconds a change may be made for; None is for good."""


class NoProposal(ValueError):
    """There is nothing sensible to ask; the message says why."""


@dataclass(frozen=True)
class Proposal:
    """What would change. ``old`` travels as the values expected to be found, so nobody's newer change is undone."""

    old: dict[str, Any]
    new: dict[str, Any]
    consequences: tuple[str, ...]
    revert_after_s: float | None = None
    """Seconds after which the engine takes it back by itself; None: it stays."""
    why: str = ""

    @property
    def title(self) -> str:
        """``spec auto → off``."""
        return changes_text(self.old, self.new)

    @property
    def is_change(self) -> bool:
        return self.old != self.new

    @property
    def duration_words(self) -> str:
        """How long it will last."""
        if self.revert_after_s is None:
            return "For good: until somebody changes it, or the engine restarts."
        back = ", ".join(f"{knob} to {value}" for knob, value in self.old.items() if self.new[knob] != value)
        return f"For {duration_text(self.revert_after_s)}; then the engine sets {back} by itself."

    def with_next_duration(self) -> Proposal:
        """The same for the next choice of time, round and round."""
        return replace(self, revert_after_s=DURATIONS[(DURATIONS.index(self.revert_after_s) + 1) % len(DURATIONS)])


def propose(state: SessionState, new: dict[str, Any]) -> Proposal:
    """Change any knobs together. What the engine is going to refuse is said, not prevented: it knows best."""
    old = {name: state.knobs.get(name) for name in new}
    changed = {name: value for name, value in new.items() if old[name] != value}
    words: list[str] = []
    spec = str(changed.get("spec", state.knobs.get("spec")))
    if "spec" in changed:
        words += _spec_words(state, spec, int(new.get("threshold", state.knobs.get("threshold", 0))))
    elif "threshold" in changed:
        words += _threshold_consequences(state, spec, changed["threshold"])
    knobs = _as_struct(state, changed)
    if "hysteresis" in changed and knobs:
        words.append(f"Having gone plain, it speculates again at {knobs.resume_at} requests or fewer.")
    if changed.keys() & {"steps", "topk", "draft_tokens"} and knobs:
        words.append(
            f"A verify then costs {knobs.draft_tokens} tokens a request and gives 1 to {knobs.steps + 1} of them."
        )
    if "draft_sync" in changed:
        words.append(_SYNC_WORDS.get(changed["draft_sync"], ""))
    refusal = _refusal(state, changed)
    if refusal:
        words.append(f"The engine will refuse this: {refusal}.")
    elif "spec" in changed:
        words.append(_same_text(state))
    return Proposal(old, new, tuple(word for word in words if word))


def propose_spec(state: SessionState, mode: str) -> Proposal:
    """Turn speculation to ``auto``, ``on`` or ``off``."""
    return propose(state, {"spec": mode})


def propose_threshold(state: SessionState, threshold: int) -> Proposal:
    """Move the threshold, kept within the knob's limits."""
    knob = KNOBS["threshold"]
    return propose(state, {"threshold": max(knob.low, min(threshold, knob.high))})


def propose_undo(state: SessionState, change: KnobEvent) -> Proposal:
    """Set back what a change set. Undoing an undo does the change again.

    Raises:
        NoProposal: the values are not those that the change left, or they were another engine's.
    """
    title = changes_text(change.old, change.new)
    if not state.trail.is_of_now(change):
        raise NoProposal(f"{title} was before the engine restarted: its knobs are those of its start again")
    if change.old == change.new:
        raise NoProposal(f"the change at step {change.step} left the values as they were; there is nothing to undo")
    for knob, value in change.new.items():
        found = state.knobs.get(knob)
        if found != value:
            last = state.trail.last_change(knob)
            by = f", set by {last.who or 'someone'} at step {last.step}" if last and last is not change else ""
            raise NoProposal(f"cannot undo {title}: {knob} is {found} now, not {value}{by}; undo that first")
    proposal = propose(state, change.old)
    by = f" by {change.who}" if change.who else ""
    first, why = f"Undoes the change from step {change.step}{by}.", f"undo of the change at step {change.step}"
    return replace(proposal, consequences=(first, *proposal.consequences), why=why)


_SYNC_WORDS = {
    "lazy": "While plain, the draft's KV is caught up in batches: cheap, and it can resume at any step.",
    "eager": "While plain, the draft's KV is written every step: costs a little each, resumes without delay.",
    "sticky": "A request that falls back to plain stays plain until it ends; only later ones speculate again.",
}


def _spec_words(state: SessionState, mode: str, threshold: int) -> list[str]:
    sync = state.knobs.get("draft_sync", Knobs().draft_sync)
    words = {
        "off": [
            "From the next step on every request decodes plainly: one token a step, no draft, no verify.",
            f"The draft stays loaded and its KV follows ({sync} sync), so it can resume at any step.",
        ],
        "on": [
            "From the next step on every decode step speculates, however many requests run.",
            f"The threshold ({threshold}) is ignored; short memory can still force a plain step.",
        ],
        "auto": [_threshold_words(threshold), _now_words(state, threshold)],
    }.get(mode, [])
    if state.draft_loaded is False and mode != "off":
        words.append("No draft is loaded, so the engine cannot speculate and may refuse.")
    return words


def _threshold_consequences(state: SessionState, spec: str, threshold: int) -> list[str]:
    if spec in ("on", "off"):
        return [f"No effect while spec={spec}; it decides once spec is auto."]
    return [_threshold_words(threshold), _now_words(state, threshold)]


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
    if is_half_precision(state.hello):
        return "Running requests go on; in half precision their text may differ at near-ties."
    return "Running requests go on with the same text."


def _as_struct(state: SessionState, changed: dict[str, Any]) -> Knobs | None:
    try:
        return apply_changes(state.knob_values, changed) if state.knob_values else None
    except KnobError:
        return None


def _refusal(state: SessionState, changed: dict[str, Any]) -> str:
    """What this version's rules have against it; nothing where they cannot tell."""
    if state.knob_values is None:
        return ""
    try:
        apply_changes(state.knob_values, changed)
    except KnobError as error:
        return str(error)
    return ""
