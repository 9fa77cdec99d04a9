"""What a stretch of an engine's life added up to: sums over its events, and what did not arrive of them.

Sums, not means of means: a ratio over a window is the ratio of its sums. Pure: no socket, no clock of its own.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable

from probes.events import AlertEvent, DropEvent, HeartbeatEvent, HelloEvent, KnobEvent, RequestEvent, StepEvent
from probes.gpu_time import GpuShare, busy_us
from probes.simulation import UNSAID, simulation_of
from probes.subscriber import Gap, Malformed, Received, Restart
from probes.switches import SwitchCounter


class Tally:
    """Takes what a subscriber gives, in order. Every metric of ``probes.checks.metrics`` is read off one of these."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        """Length of the window; whoever watched sets it. None: from the first event to the last."""
        self.modes: Counter[str] = Counter()
        """Mode -> steps."""
        self.emitted = self.discarded = 0
        self.verified = self.correct = self.proposed = 0
        self.slot_mismatches = self.replans = self.simulated = 0
        self.simulation = ""
        """What is not real in the engine, in words; empty when all of it is."""
        self.graph_hits = self.graph_misses = 0
        self.gpu = GpuShare()
        self.queue_max = self.requests_max = self.draft_lag_max = self.kv_used_max = 0
        self.step_ms, self.gpu_ms = array("d"), array("d")
        self.phases: Counter[str] = Counter()
        """Phase of requests -> how many events said it."""
        self.ttft_ms, self.tpot_ms, self.e2e_ms = array("d"), array("d"), array("d")
        self.knob_changes = 0
        self.alerts: Counter[str] = Counter()
        """Code -> alerts, of whatever level."""
        self.errors = 0
        """Alerts of level error."""
        self.gaps = self.lost = self.late = self.dropped = self.restarts = self.malformed = 0
        self._switches = SwitchCounter()
        self._last_step: StepEvent | None = None  # of the newest boot
        self._aborted_since = False
        self._idle_at: int | None = None  # number of the last step, said by an engine that waits for work
        self._span: tuple[float, float] | None = None

    # -- what comes -------------------------------------------------------------------------------------------------

    def add_all(self, items: Iterable[Received]) -> None:
        for item in items:
            self.add(item)

    def add(self, item: Received) -> None:
        """Take one item in."""
        match item:
            case Gap(recovered=True):
                self.late += item.count
            case Gap():
                self.gaps += 1
                self.lost += item.count
            case Restart():
                self.restarts += 1
                self._last_step = self._idle_at = None
                self._aborted_since = False
                self._switches.forget()
            case Malformed():
                self.malformed += 1
            case _:
                first, last = self._span or (item.t, item.t)
                self._span = (min(first, item.t), max(last, item.t))
                self._event(item)

    def meet(self, hello: HelloEvent) -> None:
        """Learn who the engine is; no part of the window."""
        self.simulation = simulation_of(hello) or self.simulation

    def settle(self, stage: str, step: int) -> None:
        """The engine's own word on where it is: ``stage``, after step ``step``."""
        self._idle_at = step if stage == "idle" else None

    def _event(self, event: object) -> None:
        match event:
            case StepEvent():
                self._step(event)
            case RequestEvent():
                self._request(event)
            case KnobEvent():
                self.knob_changes += 1
            case AlertEvent():
                self.alerts[event.code] += 1
                self.errors += event.level == "error"
            case DropEvent():
                self.dropped += event.count
            case HeartbeatEvent():
                self.settle(event.stage, event.step)
            case HelloEvent():
                self.meet(event)

    def _step(self, step: StepEvent) -> None:
        self._last_step, self._idle_at, self._aborted_since = step, None, False
        self.modes[step.mode] += 1
        self.emitted += step.emitted
        self.discarded += step.discarded
        self.verified += step.verified
        self.correct += step.correct_drafts
        self.proposed += step.proposed
        self.slot_mismatches += not step.slots_expected == step.slots_reserved == step.slots_written
        self.replans += step.replanned
        self._simulated(step)
        self.graph_hits += step.graph_hit is True
        self.graph_misses += step.graph_hit is False
        self.gpu.add(step)
        self.queue_max = max(self.queue_max, step.queue)
        self.requests_max = max(self.requests_max, step.requests)
        self.draft_lag_max = max(self.draft_lag_max, step.draft_lag)
        self.kv_used_max = max(self.kv_used_max, kv_used(step))
        self._switches.see(step)
        if step.cpu_us:
            self.step_ms.append(sum(step.cpu_us.values()) / 1000)
        if step.gpu_us:
            self.gpu_ms.append(busy_us(step) / 1000)

    def _simulated(self, step: StepEvent) -> None:
        if step.simulated:
            self.simulated += 1
            self.simulation = self.simulation or UNSAID

    def _request(self, event: RequestEvent) -> None:
        self.phases[event.phase] += 1
        if event.phase == "first_token" and event.ttft_ms is not None:
            self.ttft_ms.append(event.ttft_ms)
        elif event.phase == "aborted":
            self._aborted_since = True
        elif event.phase == "finished" and event.e2e_ms is not None:
            self.e2e_ms.append(event.e2e_ms)
            if event.ttft_ms is not None and event.output_tokens > 1:
                self.tpot_ms.append((event.e2e_ms - event.ttft_ms) / (event.output_tokens - 1))

    # -- what it came to --------------------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        return self.modes.total()

    @property
    def spec_steps(self) -> int:
        return self.modes["spec"]

    @property
    def plain_steps(self) -> int:
        """Steps whose decode requests ran one wide, with a prompt's chunk beside them or without."""
        return self.modes["plain"] + self.modes["mixed"]

    @property
    def switches(self) -> int:
        return self._switches.count

    @property
    def span(self) -> float:
        """Seconds of the window."""
        if self.seconds is not None:
            return self.seconds
        return self._span[1] - self._span[0] if self._span else 0.0

    @property
    def slots_leaked(self) -> int | str:
        """KV slots in use although nothing runs; in words why that cannot be said."""
        last = self._last_step
        if last is None:
            return "no step ran" if not self.restarts else "no step ran since the engine restarted"
        if self._idle_at is None:
            return "the engine was not idle at the end"
        if self._idle_at != last.step:
            return f"the event of the last step ({self._idle_at}) is missing, step {last.step} is the newest seen"
        if self._aborted_since:
            return "requests were aborted after the last step, and no step since shows the pools"
        return kv_used(last)


def kv_used(step: StepEvent) -> int:
    """KV slots in use after a step, over all pools."""
    return sum(pool.used for pool in step.kv.values())
