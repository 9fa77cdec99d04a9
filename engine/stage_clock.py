"""How long each stage of a step took, by the CPU's clock."""

from __future__ import annotations

import time

from engine.event_sink import EventSink


class StepClock:
    """Stages of one step. They need not lie side by side: with overlap another step's stages come between."""

    def __init__(self, sink: EventSink, step: int, start: int, round_us: int) -> None:
        """``start``: of the step, by the performance counter in nanoseconds."""
        self._sink = sink
        self._step = step
        self.start = start
        self._stage: str | None = None
        self._began = 0
        self._took: dict[str, int] = {}  # stage -> nanoseconds
        self.round_us = round_us
        """Start of the previous step to start of this one; 0 after an idle wait."""

    def begin(self, stage: str) -> None:
        """A stage begins; the one before it ends."""
        self.pause()
        self._sink.stage(stage, self._step)
        self._stage, self._began = stage, time.perf_counter_ns()

    def pause(self) -> None:
        """The stage ends, and none begins yet."""
        if self._stage is not None:
            took = time.perf_counter_ns() - self._began
            self._took[self._stage] = self._took.get(self._stage, 0) + took
            self._stage = None

    def stages_us(self) -> dict[str, int]:
        """Stage -> microseconds, up to now."""
        stage = self._stage
        self.pause()
        if stage is not None:
            self._stage, self._began = stage, time.perf_counter_ns()
        return {stage: took // 1000 for stage, took in self._took.items()}


class StageClock:
    """Makes the clock of each step; the sink's heartbeat learns each stage as it begins."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._step_began = 0

    def begin_step(self, stage: str, step: int) -> StepClock:
        """A step begins, with its first stage; it may still come to nothing."""
        now = time.perf_counter_ns()
        clock = StepClock(self._sink, step, now, (now - self._step_began) // 1000 if self._step_began else 0)
        clock.begin(stage)
        return clock

    def take_off(self, clock: StepClock) -> None:
        """The step is one: the next round is measured from its start."""
        clock.pause()
        self._step_began = clock.start

    def idle(self, step: int) -> None:
        """The loop waits for work: the next round is not measured."""
        self._sink.stage("idle", step)
        self._step_began = 0
