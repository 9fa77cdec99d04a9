"""When speculation goes on or off: the one rule by which checks, recordings and the screen count switches."""

from __future__ import annotations

from probes.events import StepEvent

UNDECIDED = ("prefill", "near_end")
"""Reasons of steps that say nothing about a decision: no decode at all, or nothing left worth drafting for."""


class SwitchCounter:
    """Changes between speculating and plain decode steps; what nobody decided does not count."""

    def __init__(self) -> None:
        self.count = 0
        self._speculating: bool | None = None

    def see(self, step: StepEvent) -> bool:
        """True when the step decided otherwise than the decode step before it."""
        if not step.requests or step.reason in UNDECIDED:
            return False
        before, self._speculating = self._speculating, step.mode == "spec"
        switched = before is not None and before != self._speculating
        self.count += switched
        return switched

    def forget(self) -> None:
        """What follows is another life: its first step is no switch."""
        self._speculating = None
