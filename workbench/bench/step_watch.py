"""The engine's own count of a run: sums over exactly the steps that ran between its start and its end."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from types import TracebackType

from probes.control import ControlClient
from probes.discovery import EngineRecord
from probes.events import DropEvent, KnobEvent, StepEvent
from probes.gpu_time import GpuShare, share_of
from probes.subscriber import Gap, Received, Restart
from workbench.bus_follower import BusFollower
from workbench.step_words import changes_text

POLL_S = 0.2
CATCH_UP_S = 30.0
"""Longest wait for the events of steps that have already run."""


@dataclass
class StepSums:
    """Over the steps of one run."""

    steps: int = 0
    verified: int = 0
    correct_drafts: int = 0
    emitted: int = 0
    simulated: bool = False
    gpu: GpuShare = field(default_factory=GpuShare)
    graph_hits: int = 0
    graph_misses: int = 0
    notes: list[str] = field(default_factory=list)
    """What makes the sums less than sure, in words."""


class StepWatch:
    """Keeps the steps of a run until they were summed."""

    def __init__(self, record: EngineRecord, control: ControlClient, who: str) -> None:
        """Connects at once; a run is what happens between ``begin`` and ``sums``.

        Raises:
            ProbeError: the engine does not answer.
        """
        self._control = control
        self._who = who
        self._bus = BusFollower(record, ("step", "knob", "drop"), who, POLL_S)
        self.hello = self._bus.hello
        self._steps: list[StepEvent] = []
        self._notes: list[str] = []
        self._newest = self.hello.step
        self._boots = 0
        self._after = 0
        self._changed = threading.Condition()
        self._bus.start(self._take_all)

    def begin(self) -> None:
        """A run starts: steps up to here are not its own.

        Raises:
            ControlTimeout: the engine does not answer.
        """
        self._after = self._control.state().step
        with self._changed:
            self._steps.clear()
            self._notes.clear()

    def sums(self) -> StepSums:
        """The run has ended: waits until the bus has brought all its steps.

        Raises:
            ControlTimeout: the engine does not answer.
        """
        last = self._control.state().step
        deadline = time.monotonic() + CATCH_UP_S
        with self._changed:
            while self._newest < last and not self._boots and time.monotonic() < deadline:
                self._changed.wait(POLL_S)
            late = self._newest < last
            steps = [step for step in self._steps if self._boots or self._after < step.step <= last]
            notes = list(self._notes)
            self._boots = 0
        if late:
            notes.append(f"the bus brought no steps after {self._newest} of {last}")
        return StepSums(
            steps=len(steps),
            verified=sum(step.verified for step in steps),
            correct_drafts=sum(step.correct_drafts for step in steps),
            emitted=sum(step.emitted for step in steps),
            simulated=any(step.simulated for step in steps),
            gpu=share_of(steps),
            graph_hits=sum(step.graph_hit is True for step in steps),
            graph_misses=sum(step.graph_hit is False for step in steps),
            notes=notes,
        )

    def close(self) -> None:
        """Stop following."""
        self._bus.close()

    def __enter__(self) -> StepWatch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _take_all(self, items: list[Received]) -> None:
        with self._changed:
            for item in items:
                self._take(item)
            self._changed.notify_all()

    def _take(self, item: object) -> None:
        match item:
            case StepEvent():
                self._steps.append(item)
                self._newest = item.step
            case KnobEvent() if item.who != self._who:
                by = item.who or "somebody"
                self._notes.append(f"{by} changed knobs during the run: {changes_text(item.old, item.new)}")
            case Gap(recovered=False) | DropEvent():
                self._notes.append(f"{item.count} {item.topic} events were lost: the engine's sums are too low")
            case Restart():
                self._boots += 1
                self._newest = 0
                self._notes.append("the engine process died and was restarted during the run")
            case _:
                pass
