"""How long each stage of a step took on the device, from events in its stream: read when the step lands.

An event is recorded where a stage begins, and one at the step's end. What lies between one step's end and the next
one's begin is ``idle``: the device had run out of work.
"""

from __future__ import annotations

import torch


class StepMarks:
    """Events of one step."""

    def __init__(self, before: torch.cuda.Event | None) -> None:
        self._before = before
        self._marks: list[tuple[str, torch.cuda.Event]] = []
        self.end: torch.cuda.Event | None = None

    def begin(self, stage: str, event: torch.cuda.Event) -> None:
        self._marks.append((stage, event))

    def stages_us(self) -> dict[str, int]:
        """Stage -> microseconds; the step has ended."""
        if self.end is None or not self._marks:
            return {}
        took: dict[str, float] = {}
        if self._before is not None:
            took["idle"] = self._before.elapsed_time(self._marks[0][1])  # milliseconds
        ends = [event for _, event in self._marks[1:]] + [self.end]
        for (stage, began), ended in zip(self._marks, ends, strict=True):
            took[stage] = took.get(stage, 0.0) + began.elapsed_time(ended)
        return {stage: max(0, round(1000 * ms)) for stage, ms in took.items()}


class DeviceTimer:
    """Marks the steps of one stream, one after another. On a device without events it marks nothing."""

    def __init__(self, device: torch.device) -> None:
        self._has_events = device.type == "cuda"
        self._end: torch.cuda.Event | None = None  # of the newest step
        self._step = StepMarks(None)

    def begin_step(self) -> None:
        self._step = StepMarks(self._end)

    def begin(self, stage: str) -> None:
        """A stage of the step begins in the current stream; the one before it ends."""
        if self._has_events:
            self._step.begin(stage, self._record())

    def end_step(self) -> StepMarks:
        """The step ends; its marks. Their ``end`` is what to wait for before its results are read."""
        if self._has_events:
            self._step.end = self._end = self._record()
        return self._step

    @staticmethod
    def _record() -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
