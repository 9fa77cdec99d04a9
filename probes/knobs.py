"""The knobs an operator turns while the engine runs, their limits, and the rules between them.

A change is a map of knobs, validated together and applied as one epoch between two steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec

SpecMode = Literal["auto", "on", "off"]
PolicyName = Literal["threshold"]
DraftSync = Literal["lazy", "eager", "sticky"]
KnobErrorCode = Literal["unknown_knob", "bad_value", "inconsistent", "unsupported"]


class KnobError(ValueError):
    """A knob change that cannot be applied; the message says what was wrong, what was expected and what to do."""

    def __init__(self, message: str, *, code: KnobErrorCode = "unsupported") -> None:
        """``code``: what the control reply says; ``unsupported`` is for what this engine cannot do."""
        super().__init__(message)
        self.code: KnobErrorCode = code


class Knobs(msgspec.Struct, frozen=True, kw_only=True):
    """Values in force. Defaults are the story's: topk 4, steps 2, 16 draft tokens."""

    spec: SpecMode = "auto"
    policy: PolicyName = "threshold"
    threshold: int = 4
    """Speculate iff the running decode requests of the step are at most this many."""
    hysteresis: int = -1
    """Having gone plain, speculate again at <= threshold - hysteresis; -1 means min(2, threshold // 4)."""
    steps: int = 2
    topk: int = 4
    draft_tokens: int = 16
    """Verify nodes a request, the root included."""
    draft_sync: DraftSync = "lazy"

    @property
    def effective_hysteresis(self) -> int:
        return min(2, self.threshold // 4) if self.hysteresis < 0 else self.hysteresis

    @property
    def resume_at(self) -> int:
        """Largest number of decode requests at which a policy that went plain speculates again."""
        return max(1, self.threshold - self.effective_hysteresis) if self.threshold > 0 else 0


@dataclass(frozen=True)
class KnobSpec:
    """What one knob accepts."""

    name: str
    kind: type
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    help: str = ""

    @property
    def expected(self) -> str:
        return "one of " + ", ".join(self.choices) if self.choices else f"a whole number from {self.low} to {self.high}"

    def parse(self, value: Any) -> str | int:
        """Turn a wire or command-line value into the knob's type.

        Raises:
            KnobError: wrong type, or out of range.
        """
        if self.choices:
            if isinstance(value, str) and value in self.choices:
                return value
        elif isinstance(value, bool):
            pass
        elif isinstance(value, int) and self.low <= value <= self.high:
            return value
        elif isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value):
            number = int(value)
            if self.low <= number <= self.high:
                return number
        raise KnobError(f"knob {self.name}: got {_clipped(value)}, expected {self.expected}", code="bad_value")


KNOBS: dict[str, KnobSpec] = {
    spec.name: spec
    for spec in (
        KnobSpec("spec", str, choices=get_args(SpecMode), help="auto: the policy decides; on, off: by hand"),
        KnobSpec("policy", str, choices=get_args(PolicyName), help="how auto decides"),
        KnobSpec("threshold", int, low=0, high=4096, help="speculate at up to this many decode requests; 0 never"),
        KnobSpec("hysteresis", int, low=-1, high=4096, help="gap below the threshold to resume at; -1 picks it"),
        KnobSpec("steps", int, low=1, high=16, help="draft depth"),
        KnobSpec("topk", int, low=1, high=16, help="children kept at each draft node; 1 is a chain"),
        KnobSpec("draft_tokens", int, low=2, high=128, help="verify nodes a request, root included"),
        KnobSpec("draft_sync", str, choices=get_args(DraftSync), help="how the draft's KV follows plain steps"),
    )
}


def largest_tree(steps: int, topk: int) -> int:
    """Most verify nodes (root included) that a draft of this shape can fill: its whole candidate pool and the root."""
    return steps + 1 if topk == 1 else 1 + topk + (steps - 1) * topk * topk


def check_shape(steps: int, topk: int, draft_tokens: int) -> None:
    """Refuse a tree shape that the draft cannot fill.

    Raises:
        KnobError: naming the rule and the values.
    """
    limit = largest_tree(steps, topk)
    if topk == 1 and draft_tokens != limit:
        raise KnobError(
            f"topk=1 is a chain, so draft_tokens must be steps + 1 = {limit} (root included), got {draft_tokens}; "
            f"set draft_tokens={limit}, or steps={draft_tokens - 1}",
            code="inconsistent",
        )
    if topk > 1 and not 2 <= draft_tokens <= limit:
        raise KnobError(
            f"steps={steps} topk={topk} draft_tokens={draft_tokens}: a tree needs 2 <= draft_tokens <= "
            f"1 + topk + (steps - 1) * topk^2 = {limit}; lower draft_tokens, or raise steps or topk",
            code="inconsistent",
        )


def apply_changes(knobs: Knobs, changes: dict[str, Any]) -> Knobs:
    """The knobs after a change, or an error and no change at all.

    When only ``steps`` of a chain changes, or a change makes topk 1, ``draft_tokens`` must come with it: nothing is
    adjusted silently.

    Raises:
        KnobError: an unknown knob, a bad value, or an inconsistent combination.
    """
    new = msgspec.structs.replace(knobs, **parse_values(changes))
    check_shape(new.steps, new.topk, new.draft_tokens)
    return new


def parse_values(values: dict[str, Any]) -> dict[str, str | int]:
    """Knob -> value of the knob's own type.

    Raises:
        KnobError: an unknown knob or a bad value.
    """
    parsed: dict[str, str | int] = {}
    for name, value in values.items():
        if name not in KNOBS:
            raise KnobError(f"unknown knob {_clipped(name)}; the knobs are {', '.join(KNOBS)}", code="unknown_knob")
        parsed[name] = KNOBS[name].parse(value)
    return parsed


def _clipped(value: Any) -> str:
    """A value as it came, short enough for a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
