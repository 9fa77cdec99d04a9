"""How long each stage of a step took, by the CPU's clock."""

from __future__ import annotations

import time

from engine.event_sink import EventSink


class StageClock:
    """Marks the stages of one step after another; the sink's heartbeat learns each stage as it begins."""

    def __init__(self, sink: EventSink) -> None:
        self._sink = sink
        self._marks: list[tuple[str, int]] = []
        self._step_began = 0
        self.round_us = 0
        """Start of the previous step to start of this one; 0 after an idle wait."""

    def begin(self, stage: str, step: int) -> None:
        """A stage begins; the one before it ends."""
        self._sink.stage(stage, step)
        self._marks.append((stage, time.perf_counter_ns()))

    def begin_step(self, stage: str, step: int) -> None:
        """The first stage of a step begins."""
        self._marks.clear()
        self.begin(stage, step)
        now = self._marks[0][1]
        self.round_us = (now - self._step_began) // 1000 if self._step_began else 0
        self._step_began = now

    def idle(self, step: int) -> None:
        """The loop waits for work: the next round is not measured."""
        self._sink.stage("idle", step)
        self._step_began = 0

    def stages_us(self) -> dict[str, int]:
        """Stage -> microseconds, up to now."""
        ends = [mark for _, mark in self._marks[1:]] + [time.perf_counter_ns()]
        took: dict[str, int] = {}
        for (stage, began), ended in zip(self._marks, ends, strict=True):
            took[stage] = took.get(stage, 0) + (ended - began) // 1000
        return took
