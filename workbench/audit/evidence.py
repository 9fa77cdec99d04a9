"""What four witnesses saw of the same requests: the client, the bus, a recording, and a screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from probes.events import KnobEvent, RequestEvent, RowsEvent, StepEvent
from probes.subscriber import Received
from workbench.audit.traffic import Planned
from workbench.bench.answer import Answer
from workbench.tui.session_state import SessionState

T = TypeVar("T")


@dataclass(frozen=True)
class Served:
    """One request as its client saw it."""

    planned: Planned
    answer: Answer

    @property
    def name(self) -> str:
        return f"request {self.answer.id or '(no id)'} (#{self.planned.number}, {self.planned.kind})"

    def engine_id(self, choice: int) -> str:
        """Under which the engine and the bus know one of its choices."""
        return self.answer.id if self.planned.choices == 1 else f"{self.answer.id}-{choice}"


@dataclass
class Evidence:
    """Of one audit. Steps after ``first_step`` up to ``last_step`` are its own."""

    served: list[Served]
    bus: list[Received]
    screen: SessionState
    screen_now: float
    """The screen's clock when it was looked at."""
    first_step: int
    last_step: int
    first_epoch: int
    """Knob epoch in force before the first request."""
    switches: list[dict[str, Any]] = field(default_factory=list)
    """Knob changes that the engine has acknowledged: ``new``, ``step``, ``knob_epoch``."""
    recording: list[Received] | None = None
    """None: none was made."""
    recording_lost: int = 0
    recording_error: str = ""
    """Why the recording stopped before its time."""

    def steps(self) -> list[StepEvent]:
        """The bus's step events of this audit, as they came."""
        return [step for step in of_type(self.bus, StepEvent) if self.first_step < step.step <= self.last_step]

    def rows(self) -> list[RowsEvent]:
        return [rows for rows in of_type(self.bus, RowsEvent) if self.first_step < rows.step <= self.last_step]

    def requests(self) -> dict[str, list[RequestEvent]]:
        """Engine request id -> its events, as they came; only of requests that arrived in this audit."""
        found: dict[str, list[RequestEvent]] = {}
        for event in of_type(self.bus, RequestEvent):
            if event.phase == "arrived" or event.request_id in found:
                found.setdefault(event.request_id, []).append(event)
        return found

    def knobs(self) -> list[KnobEvent]:
        return of_type(self.bus, KnobEvent)


def of_type(items: Iterable[object], kind: type[T]) -> list[T]:
    """The items of one class, in order."""
    return [item for item in items if isinstance(item, kind)]


def ending_of(events: Sequence[RequestEvent]) -> RequestEvent | None:
    """The event with which a request ended; None while it has not."""
    return next((event for event in events if event.phase in ("finished", "aborted")), None)
