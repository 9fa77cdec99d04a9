"""What the steps say of the GPU: how much of its time it waits, and which steps missed their graph. Pure.

Times are the engine's own. The idle share is a ratio of sums by CUDA events (see ``probes.gpu_time``).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from probes.events import StepEvent
from probes.gpu_time import GpuShare, busy_us, idle_us
from workbench.step_words import missed_graph

IDLE_S = 10.0
"""Seconds that the idle share is taken over."""
MINUTE_S = 60.0
MOST = 50_000
"""Samples kept, so that a flood of steps stays bounded; of more the window is shorter."""


@dataclass(frozen=True)
class GpuReading:
    """What a panel shows."""

    idle: float | None
    """Share of the GPU's time, 0 to 1, in which it waited; None without a measured step in the window."""
    looked: int
    """Steps seen that looked for a captured graph."""
    misses: int
    """Of them without one; since the boot where ``is_since_start``."""
    recent: int
    """Misses seen in the last minute."""
    is_since_start: bool
    """``misses`` is the engine's own count, or no step of this boot went unseen."""


class GpuMeter:
    """Takes every step of one boot, in order."""

    def __init__(self) -> None:
        self.is_seen = False
        """Some step had a time by the GPU's clock, or looked for a graph."""
        self._share = GpuShare()
        self._shares: deque[StepTimes] = deque()
        self._missed: deque[float] = deque(maxlen=MOST)  # t of the steps that missed
        self._looked = self._misses = 0
        self._counted: int | None = None  # by the engine itself
        self._newest = 0  # number of the newest step seen
        self._is_whole = True  # all steps of this boot so far were seen

    def add(self, step: StepEvent) -> None:
        """Take a step in."""
        self._is_whole &= step.step == self._newest + 1
        self._newest = step.step
        if step.graph_hit is not None:
            self._looked += 1
        if missed_graph(step):
            self._misses += 1
            self._missed.append(step.t)
        if step.graph_misses is not None:
            self._counted = step.graph_misses
        self.is_seen |= bool(step.gpu_us) or step.graph is not None
        idle = idle_us(step)
        if idle is not None:
            times = StepTimes(step.t, idle, busy_us(step))
            self._shares.append(times)
            self._share.idle += times.idle
            self._share.busy += times.busy
            self._trim(step.t)

    def read(self, now: float) -> GpuReading:
        """As of ``now``, the engine's time."""
        self._trim(now)
        while self._missed and self._missed[0] <= now - MINUTE_S:
            self._missed.popleft()
        return GpuReading(
            idle=self._share.value,
            looked=self._looked,
            misses=self._counted if self._counted is not None else self._misses,
            recent=len(self._missed),
            is_since_start=self._counted is not None or self._is_whole,
        )

    def _trim(self, now: float) -> None:
        while self._shares and (self._shares[0].t <= now - IDLE_S or len(self._shares) > MOST):
            old = self._shares.popleft()
            self._share.idle -= old.idle
            self._share.busy -= old.busy


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Of one step, in microseconds."""

    t: float
    idle: int
    busy: int
