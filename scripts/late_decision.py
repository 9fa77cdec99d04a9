"""An engine with the bug that specwb grew from: speculation is switched off after the slots are reserved.

Started in place of ``python -m engine.process`` by scripts/make_recordings.py. It is the real engine process; only
``EngineCore.after_reserve``, the seam for faults, is used: the first time ten requests are about to verify, it puts a
plan of one token a request in the place of the plan of sixteen, as the patched worker of the story did.
"""

from __future__ import annotations

import sys
from dataclasses import replace

from engine import process
from engine.core import EngineCore
from engine.spec.choice import SpecChoice
from engine.step_plan import StepPlan, make_plan

REQUESTS = 10
SET_BY = "scripts.late_decision:decide_late"


class LateDecision:
    """Decides late at the first step of ten speculating requests, and again after ``every`` of them."""

    def __init__(self, every: int = 40) -> None:
        self._every = every
        self._seen = 0

    def __call__(self, plan: StepPlan) -> StepPlan:
        if not plan.speculates or len(plan.decodes) < REQUESTS:
            return plan
        self._seen += 1
        return decide_late(plan) if self._seen % self._every == 1 else plan


def decide_late(plan: StepPlan) -> StepPlan:
    """The same requests, one token each; the slots stay as they were reserved."""
    plain = SpecChoice(False, "above_threshold", "decided after the reservation")
    late = make_plan(plan.step, plain, [row.request for row in plan.decodes], plan.prefills)
    return replace(late, set_by=SET_BY)


class LateEngine(process.EngineProcess):
    """The engine process with the fault built in."""

    def _serve(self, core: EngineCore) -> None:
        core.after_reserve = LateDecision()
        super()._serve(core)


if __name__ == "__main__":
    process.EngineProcess = LateEngine  # type: ignore[misc]
    sys.exit(process.main())
