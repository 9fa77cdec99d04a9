"""The steps' summary as it goes: a line a second, and one whenever the engine switches. A reason is said once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from probes.events import StepEvent
from probes.simulation import WORD
from workbench.cell_text import fit, width_of
from workbench.step_words import reason_text, widths_text

EVERY_S = 1.0
WINDOW_S = 2.0
"""Steps of the last seconds (by the engine's clock) that accept length and pace are taken over."""

HEADER = "  time  in flight  step      reqs  width     accept   tok/s  queue  why"


class ProgressLine:
    """Says lines of one setting's load."""

    def __init__(self, say: Callable[[str], None], began: float, columns: int | None = None) -> None:
        """Nothing is said yet.

        Args:
            began: monotonic time that the first column counts from.
            columns: of the terminal, where lines are cut to stay one below the other; None leaves them whole.
        """
        self._say = say
        self._began = began
        self._columns = columns
        self._said_at = 0.0
        self._why = ""
        self._window: deque[tuple[StepEvent, float]] = deque()

    def step(self, step: StepEvent, us: float, in_flight: int, switched: bool) -> None:
        """Take note of a step that took ``us`` microseconds; may say a line.

        ``in_flight``: requests without their answer. When the number of clients goes down, those that leave wait for
        theirs first, so that it stands above that number for a while.
        """
        self._window.append((step, us))
        while self._window[0][0].t < step.t - WINDOW_S:
            self._window.popleft()
        now = time.monotonic()
        # Steps without a decode explain nothing: the line waits for the next one that has.
        if switched or (now - self._said_at >= EVERY_S and step.requests):
            self._said_at = now
            line = self._line(step, now, in_flight, switched)
            self._say(fit(line, self._columns).rstrip() if self._columns and width_of(line) > self._columns else line)

    def _line(self, step: StepEvent, now: float, in_flight: int, switched: bool) -> str:
        steps = [entry for entry, _ in self._window]
        us = sum(cost for _, cost in self._window)
        verified = sum(entry.verified for entry in steps)
        accept = f"{1 + sum(entry.correct_drafts for entry in steps) / verified:.2f}" if verified else "n/a"
        pace = f"{sum(entry.emitted for entry in steps) / us * 1e6:.1f}" if us else "-"
        mode = ("→ " if switched else "  ") + step.mode.upper()
        # The eye looks for what changes: a reason that goes on holding is not said again.
        why, self._why = self._why, reason_text(step)
        said = f"{WORD} " if step.simulated else ""
        return (
            f"{now - self._began:5.1f}s  {in_flight:>9}  {mode:<8}  {step.requests:>4}  {widths_text(step):<8}  "
            f"{accept:>6}  {pace:>6}  {step.queue:>5}  {said}{'' if why == self._why else self._why}"
        ).rstrip()
