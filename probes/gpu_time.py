"""What a step says of the GPU: how long it worked, and how long it had nothing to do before. Pure.

``gpu_us`` comes from CUDA events at the borders of the stages. ``idle`` in it is no stage but the time from the end of
the step before to the begin of this one. After an idle wait of the engine that time says nothing about the scheduler,
so it is left out everywhere: such a step has ``round_us`` 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from probes.events import StepEvent

IDLE = "idle"


def busy_us(step: StepEvent) -> int:
    """Microseconds of the step's own stages by the GPU's clock; 0 without a GPU."""
    return sum(us for stage, us in step.gpu_us.items() if stage != IDLE)


def idle_us(step: StepEvent) -> int | None:
    """Microseconds that the GPU waited for the step; None when not measured, or when there was no work before it."""
    return step.gpu_us.get(IDLE) if step.round_us > 0 else None


def idle_share(step: StepEvent) -> float | None:
    """Share of the GPU's time from the end of the step before to the end of this one in which it waited, 0 to 1."""
    return share_of([step]).value


@dataclass
class GpuShare:
    """The share of idle time over several steps: a ratio of sums."""

    idle: int = 0
    busy: int = 0

    def add(self, step: StepEvent) -> None:
        """Take a step in, if it says how long the GPU waited for it."""
        idle = idle_us(step)
        if idle is not None:
            self.idle += idle
            self.busy += busy_us(step)

    @property
    def value(self) -> float | None:
        """0 to 1; None when nothing was measured."""
        total = self.idle + self.busy
        return self.idle / total if total else None


def share_of(steps: Iterable[StepEvent]) -> GpuShare:
    """The sums over some steps."""
    share = GpuShare()
    for step in steps:
        share.add(step)
    return share
