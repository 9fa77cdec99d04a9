"""The threshold rule, worked out once more from nothing but what the bus says, to hold every step against it.

Written from the rule's words, not from the engine's policy: a step with n running decode requests speculates if and
only if n is at most the threshold; having gone plain, only once n is back at the resume point. The number of running
decode requests comes from the request events (first token given, not yet ended), so a step cannot justify itself.
"""

from __future__ import annotations

from probes.events import RequestEvent, StepEvent
from probes.knobs import Knobs


class ThresholdRule:
    """Takes events in the order of the bus, from an idle engine on; says where a step breaks the rule."""

    def __init__(self, knobs: Knobs, knob_epoch: int) -> None:
        """``knobs``: in force for all steps that are to be seen, ``spec=auto``; ``knob_epoch``: their epoch."""
        self._knobs = knobs
        self._epoch = knob_epoch
        self._decoding: set[str] = set()  # requests past their first token, now
        self._before: int | None = None  # how many of them there were when the step began that is under way
        self._gone_plain = False
        self.steps = 0
        self.violations: list[str] = []
        self.held = 0
        """Plain steps at or below the threshold: hysteresis at work."""
        self.loads: set[int] = set()
        """Numbers of decode requests that steps ran with."""
        self.to_plain = self.to_spec = 0
        """Changes of the decision."""

    def request(self, event: RequestEvent) -> None:
        """A request changed phase; what happens within a step is told before the step's own event."""
        if event.phase == "first_token":
            self._begin_step()
            self._decoding.add(event.request_id)
        elif event.phase == "finished":
            self._begin_step()
            self._decoding.discard(event.request_id)
        elif event.phase == "aborted":
            self._decoding.discard(event.request_id)

    def step(self, step: StepEvent) -> None:
        """Hold one step against the rule."""
        self._begin_step()
        running, self._before = self._before or 0, None
        self.steps += 1
        speculate = self._decide(running)
        for wrong in self._differences(step, running, speculate):
            self.violations.append(f"step {step.step} ({step.mode}, {step.reason}): {wrong}")
        if step.requests:
            self.loads.add(step.requests)
            self.held += not speculate and running <= self._knobs.threshold

    def _begin_step(self) -> None:
        if self._before is None:
            self._before = len(self._decoding)

    def _decide(self, running: int) -> bool:
        limit = self._knobs.resume_at if self._gone_plain else self._knobs.threshold
        speculate = running <= limit
        self.to_plain += not speculate and not self._gone_plain
        self.to_spec += speculate and self._gone_plain
        self._gone_plain = not speculate
        return speculate

    def _differences(self, step: StepEvent, running: int, speculate: bool) -> list[str]:
        """In words; nothing where the step is as the rule says."""
        wide = str(self._knobs.draft_tokens)
        if step.knob_epoch != self._epoch:
            return [f"ran with the knobs of epoch {step.knob_epoch}, not {self._epoch}: somebody turned them"]
        if step.mode == "prefill":
            # While speculating a prompt runs in a step of its own; beside plain decodes it shares theirs.
            return [] if speculate or not running else [f"{running} plain decodes were left out of a prompt's step"]
        found = []
        if step.requests != running:
            found.append(f"has {step.requests} decode requests, {running} are running by the request events")
        if not speculate:
            if step.mode not in ("plain", "mixed"):
                found.append(f"speculates with {running} decode requests, {self._limit_text()}")
            if step.widths != {"1": step.requests}:
                found.append(f"is plain with widths {step.widths}")
            expected = "above_threshold" if running > self._knobs.threshold else "threshold_hold"
            if step.reason != expected:
                found.append(f"gives the reason {step.reason}, not {expected}")
            return found
        if step.reason == "memory":
            return found  # the pool was too full: plain is right whatever the load
        if step.mode == "spec":
            if not set(step.widths) <= {wide, "1"} or wide not in step.widths:
                found.append(f"speculates with widths {step.widths}, not {wide}")
            if step.reason != "threshold":
                found.append(f"gives the reason {step.reason}, not threshold")
        elif step.reason != "near_end":
            found.append(f"is plain with {running} decode requests, {self._limit_text()}")
        return found

    def _limit_text(self) -> str:
        return f"threshold {self._knobs.threshold}, resume point {self._knobs.resume_at}"
