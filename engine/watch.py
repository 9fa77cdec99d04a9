"""Looks at every step for what an operator should know without watching: useless drafts, a policy that flaps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from probes.events import AlertLevel, StepEvent

LEAST_VERIFIES = 200
"""Verifies to judge acceptance on."""
COLLAPSED = 1.1
"""Accept length below which speculation only costs; 1.0 is nothing accepted at all."""
FLAPS, FLAP_WINDOW_S = 10, 10.0
"""Switches by the policy itself within this many seconds that are hunting."""

_BY_LOAD = {"threshold", "above_threshold", "threshold_hold"}

Alert = Callable[[str, AlertLevel, str, int, dict[str, Any]], None]


class StepWatch:
    """Raises an alert once a knob epoch for each thing it finds; turning a knob makes it look afresh."""

    def __init__(self, alert: Alert) -> None:
        self._alert = alert
        self._epoch = -1
        self._said: set[str] = set()
        self._verified = 0
        self._correct = 0
        self._by_load: bool | None = None  # whether the last decode step decided by load speculated
        self._switches: deque[float] = deque(maxlen=FLAPS)

    def see(self, step: StepEvent) -> None:
        """Look at a step's event."""
        if step.knob_epoch != self._epoch:
            self._epoch = step.knob_epoch
            self._said.clear()
            self._switches.clear()
            self._verified = self._correct = 0
            self._by_load = None
        self._watch_acceptance(step)
        self._watch_policy(step)

    def _watch_acceptance(self, step: StepEvent) -> None:
        self._verified += step.verified
        self._correct += step.correct_drafts
        if self._verified < LEAST_VERIFIES:
            return
        length = 1 + self._correct / self._verified
        if length < COLLAPSED:
            self._say(
                step,
                "acceptance_collapsed",
                f"accept length {length:.2f} over the last {self._verified} verifies: the drafts are almost never "
                "accepted and speculation only costs; set spec=off, or start with a draft that fits the model",
                {"accept_length": length, "verified": self._verified},
            )
        self._verified = self._correct = 0

    def _watch_policy(self, step: StepEvent) -> None:
        if not step.requests or step.reason not in _BY_LOAD:
            return
        speculated = step.mode == "spec"
        if self._by_load is not None and speculated != self._by_load:
            self._switches.append(step.t)
            if len(self._switches) == FLAPS and step.t - self._switches[0] <= FLAP_WINDOW_S:
                self._say(
                    step,
                    "policy_flaps",
                    f"the policy switched {FLAPS} times in {step.t - self._switches[0]:.1f} s: the load hovers at the "
                    "threshold; raise hysteresis, or move the threshold",
                    {"switches": FLAPS, "seconds": step.t - self._switches[0]},
                )
        self._by_load = speculated

    def _say(self, step: StepEvent, code: str, message: str, data: dict[str, Any]) -> None:
        if code not in self._said:
            self._said.add(code)
            self._alert(code, "warning", message, step.step, data)
