"""Sums over step events: what a setting of speculation did to a load. Token counts, never chunks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median, quantiles

from probes.events import StepEvent
from probes.switches import SwitchCounter
from workbench.step_words import slots_agree

FEWEST_STEPS = 5
"""A pace over fewer steps is not shown."""


class StepTimer:
    """Microseconds that each step cost by the wall: since the end of the last one, or its own stages after idling."""

    def __init__(self) -> None:
        self._last: StepEvent | None = None

    def cost_us(self, step: StepEvent) -> float:
        """Call with every step, in order."""
        last, self._last = self._last, step
        if last is not None and last.step == step.step - 1 and step.round_us:
            return max(0.0, (step.t - last.t) * 1e6)
        return float(sum(step.cpu_us.values()))


@dataclass
class Pace:
    """Tokens over time."""

    tokens: int = 0
    costs_us: list[float] = field(default_factory=list)
    """By step."""

    def add(self, tokens: int, us: float) -> None:
        self.tokens += tokens
        self.costs_us.append(us)

    @property
    def tok_s(self) -> float | None:
        """Tokens a second of engine time; None where there is too little to tell."""
        total = sum(self.costs_us)
        return self.tokens / total * 1e6 if total and len(self.costs_us) >= FEWEST_STEPS else None

    @property
    def typical_tok_s(self) -> float | None:
        """Tokens a step over the median step's time, for steps of one kind: a few disturbed ones do not move it."""
        if len(self.costs_us) < FEWEST_STEPS or not (typical := median(self.costs_us)):
            return None
        return self.tokens / len(self.costs_us) / typical * 1e6

    @property
    def spread(self) -> float | None:
        """How many times longer the slow steps took than the quick ones (90th over 10th percentile)."""
        if len(self.costs_us) < 2 * FEWEST_STEPS:
            return None
        deciles = quantiles(self.costs_us, n=10)
        return deciles[-1] / deciles[0] if deciles[0] > 0 else None


@dataclass
class StepSums:
    """Of one stretch of steps."""

    steps: int = 0
    finished: int = 0
    verified: int = 0
    correct: int = 0
    miscounted: list[int] = field(default_factory=list)
    """Steps whose three slot counts differ."""
    in_use: int = 0
    """KV slots in use after the newest step, over both pools."""
    simulated: bool = False
    pace: Pace = field(default_factory=Pace)
    """Over all steps, prefill included."""
    by_requests: defaultdict[int, Pace] = field(default_factory=lambda: defaultdict(Pace))
    """Decode requests in the step -> pace of such steps, those with prompt tokens left out."""
    _switches: SwitchCounter = field(default_factory=SwitchCounter)

    def add(self, step: StepEvent, us: float) -> bool:
        """Count a step that took ``us`` microseconds; True when it decided otherwise than the decode step before."""
        self.steps += 1
        self.finished += step.finished
        self.verified += step.verified
        self.correct += step.correct_drafts
        self.in_use = sum(pool.used for pool in step.kv.values())
        self.simulated |= step.simulated
        if not slots_agree(step):
            self.miscounted.append(step.step)
        self.pace.add(step.emitted, us)
        if step.requests and not step.prefill_tokens:
            self.by_requests[step.requests].add(step.emitted, us)
        return self._switches.see(step)

    @property
    def switches(self) -> int:
        """Changes between speculating and plain decode steps."""
        return self._switches.count

    @property
    def accept_length(self) -> float | None:
        """1 + correct drafts / verifies: includes the bonus token; None when nothing was verified."""
        return 1 + self.correct / self.verified if self.verified else None
