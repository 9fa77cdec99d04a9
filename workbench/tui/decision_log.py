"""What the engine decided, told by its changes: a run of steps that were decided alike is one entry. Pure, bounded."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Literal

from probes.events import StepEvent
from probes.switches import SwitchCounter

KEPT = 2_000
"""Entries kept; the oldest go first."""

NoteKind = Literal["knob", "alert", "gap", "restart"]


@dataclass
class Run:
    """Steps in a row whose decode rows were decided alike, for the same reason.

    A prompt's own step between two of them decides nothing about the decode rows: it is counted, and ends no run.
    """

    number: int
    boot_id: str
    speculates: bool
    reason: str
    detail: str
    """The reason's words at the first step."""
    first_step: int
    last_step: int
    first_t: float
    last_t: float
    modes: Counter[str] = field(default_factory=Counter)
    """Mode -> steps."""
    least: int = 0
    most: int = 0
    """Decode requests of a step, from least to most."""

    @property
    def steps(self) -> int:
        return self.modes.total()

    @property
    def is_prompts_only(self) -> bool:
        return len(self.modes) == 1 and "prefill" in self.modes

    @property
    def seconds(self) -> float:
        """From the first step's end to the last one's; clocks that went back give 0."""
        return max(0.0, self.last_t - self.first_t)

    @property
    def mode_words(self) -> str:
        """``SPEC``, ``PLAIN+MIXED``: the modes of its decode steps, or PREFILL."""
        decoding = [mode for mode in self.modes if mode != "prefill"]
        return "+".join(mode.upper() for mode in decoding) or "PREFILL"

    def takes(self, step: StepEvent) -> bool:
        """The step goes on with what this run decided."""
        if step.boot_id != self.boot_id:
            return False
        if step.mode == "prefill":
            return True
        if self.is_prompts_only:
            return False
        return (step.mode == "spec") is self.speculates and step.reason == self.reason

    def add(self, step: StepEvent) -> None:
        if step.mode != "prefill":
            self.least = min(self.least, step.requests) if self.most else step.requests
            self.most = max(self.most, step.requests)
        self.modes[step.mode] += 1
        self.last_step, self.last_t = step.step, step.t


@dataclass(frozen=True)
class Note:
    """Something between the runs that may explain the next one."""

    number: int
    kind: NoteKind
    text: str
    step: int
    """The step it happened at, as far as that is known; else 0."""
    boot_id: str = ""
    severe: bool = False


LogEntry = Run | Note


class DecisionLog:
    """Runs and notes, oldest first."""

    def __init__(self) -> None:
        self.entries: deque[LogEntry] = deque(maxlen=KEPT)
        self.by_reason: Counter[str] = Counter()
        """Reason code -> steps, over everything seen."""
        self.steps = 0
        self.version = 0
        self._made = 0
        self._run: Run | None = None
        self._switches = SwitchCounter()

    @property
    def switches(self) -> int:
        """Times that decode steps went from plain to speculating or back."""
        return self._switches.count

    def take(self, step: StepEvent) -> None:
        """The next step; a change of knobs or a restart before it always starts a run."""
        self.version += 1
        self.steps += 1
        self.by_reason[step.reason] += 1
        if self._run is None or not self._run.takes(step):
            self._run = Run(
                self._number(),
                step.boot_id,
                step.mode == "spec",
                step.reason,
                step.reason_detail,
                step.step,
                step.step,
                step.t,
                step.t,
            )
            self.entries.append(self._run)
        self._run.add(step)
        self._switches.see(step)

    def note(self, kind: NoteKind, text: str, step: int = 0, boot_id: str = "", severe: bool = False) -> None:
        """Something happened; what is decided after it is a run of its own."""
        self.version += 1
        self.entries.append(Note(self._number(), kind, text, step, boot_id, severe))
        self._run = None
        if kind == "restart":
            self._switches.forget()

    def _number(self) -> int:
        self._made += 1
        return self._made
