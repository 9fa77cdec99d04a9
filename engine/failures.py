"""What a step that goes wrong costs: its own requests, ended with words that say why. The engine goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from engine.ipc import Failed, Output
from engine.reporter import Reporter
from engine.request import Request
from engine.step_plan import PlanMismatch

log = logging.getLogger(__name__)

MAX_IN_A_ROW = 3
"""Steps in a row that may fail before the engine gives up."""


class StepFailures:
    """Ends requests of failed steps and counts those steps."""

    def __init__(self, reporter: Reporter, is_here: Callable[[str], bool], retire: Callable[[Request], object]) -> None:
        """``is_here``: whether the engine still has the request of that id. ``retire`` frees all that one holds."""
        self._reporter = reporter
        self._is_here = is_here
        self._retire = retire
        self._in_a_row = 0

    def step_ran(self) -> None:
        """A step came to its end."""
        self._in_a_row = 0

    def mismatch(
        self,
        number: int,
        attempt: int,
        error: PlanMismatch,
        requests: Sequence[Request],
        outputs: list[Output | Failed],
    ) -> None:
        """Plan and reservation disagree, and the reservation is rolled back: the first time the step is planned once
        more, the second time its requests end."""
        message = f"step {number} was not run: {error}"
        then = "it is planned once more" if attempt == 1 else "its requests fail"
        data = {**error.data, "attempt": attempt}
        self._reporter.alert("plan_mismatch", "error", f"{message}; {then}", number, data)
        if attempt > 1:
            self._end(number, requests, "plan_mismatch", message, outputs)

    def step_broke(
        self, number: int, requests: Sequence[Request], error: Exception, outputs: list[Output | Failed]
    ) -> None:
        """A step broke off: end its requests. ``outputs`` are what it gave before, and get what it failed.

        Raises:
            RuntimeError: several steps in a row failed.
        """
        log.error("step %d failed", number, exc_info=error)
        self._in_a_row += 1
        message = f"step {number} failed: {error}"
        if isinstance(error, PlanMismatch):
            self._reporter.alert("plan_mismatch", "error", message, number, dict(error.data))
        else:
            self._reporter.alert("step_failed", "error", message, number, {"requests": len(requests)})
        self._end(number, requests, "step_failed", message, outputs)
        if self._in_a_row >= MAX_IN_A_ROW:
            raise RuntimeError(f"{self._in_a_row} steps in a row failed, the last with: {error}") from error

    def _end(
        self, number: int, requests: Sequence[Request], code: str, message: str, outputs: list[Output | Failed]
    ) -> None:
        ended = {o.request_id for o in outputs if isinstance(o, Failed) or o.finish_reason is not None}
        for request in requests:
            if request.request_id in ended:
                continue
            request.finish_reason = "error"
            if self._is_here(request.request_id):  # else the step broke off right behind its end
                self._retire(request)
            outputs.append(Failed(request_id=request.request_id, status=500, code=code, message=message))
            self._reporter.request(request, "aborted", number, error=message)
