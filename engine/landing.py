"""A step lands: what it gave is committed to requests, ledger and event, token by token up to the stops."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.accepted import Accepted
from engine.ipc import Failed, Output, TokenLogprobs
from engine.kv.ledger import KvLedger, Reservation
from engine.reporter import Reporter
from engine.request import Request
from engine.stage_clock import StepClock
from engine.step_plan import PlanMismatch, StepPlan
from engine.step_tally import StepTally
from engine.worker import Landed, Worker
from probes.events import StepEvent


@dataclass
class InFlight:
    """A step between its launch and its landing."""

    plan: StepPlan
    reservation: Reservation
    tally: StepTally
    clock: StepClock
    knob_epoch: int
    launched: object  # the worker's own
    is_in_air: bool = True  # whether its requests still count it among what flies


class Landing:
    """Commits landed steps."""

    def __init__(
        self,
        worker: Worker,
        ledger: KvLedger,
        reporter: Reporter,
        retire: Callable[[Request], int],
        *,
        publish_tokens: bool,
    ) -> None:
        """``retire`` takes a request out and frees what it holds; the count of slots that were in use."""
        self._worker = worker
        self._ledger = ledger
        self._reporter = reporter
        self._retire = retire
        self._publish_tokens = publish_tokens

    def take_off(self, flight: InFlight) -> None:
        """The step was launched: its requests count with what it will commit."""
        _count_flying(flight.plan, 1)

    def touch_down(self, flight: InFlight) -> None:
        """The step flies no more, however it ended."""
        if flight.is_in_air:
            flight.is_in_air = False
            _count_flying(flight.plan, -1)

    def land(self, flight: InFlight, outputs: list[Output | Failed]) -> StepEvent:
        """Wait for the step, commit it, publish its event. ``outputs`` get what it gave.

        Raises:
            PlanMismatch: the worker wrote another number of slots than were reserved.
        """
        clock, tally = flight.clock, flight.tally
        clock.begin("wait")
        landed = self._worker.land(flight.launched)
        clock.begin("commit")
        self.touch_down(flight)
        tally.take(landed)
        if landed.slots_written != flight.reservation.slots:
            reservation = flight.reservation
            raise PlanMismatch(
                "slots written", reservation.slots, reservation.set_by, landed.slots_written, landed.written_by
            )
        wants_rows = self._reporter.sink.wants("rows")
        for entry, (_, reserved) in zip(landed.entries, flight.plan.rows, strict=True):
            if entry.request.is_finished:  # it ended, or left, while the step flew: what comes behind is not its text
                tally.overrun += 1
                continue
            if entry.width > 1:
                tally.count_walk(entry.request, entry.walk, entry.width)
            output = self._commit(entry, reserved, landed, flight, wants_rows)
            if entry.walk.tokens:
                outputs.append(output)
        clock.begin("publish")
        return self._reporter.step(flight.plan, flight.reservation, tally, flight.knob_epoch, clock)

    def _commit(self, entry: Accepted, reserved: int, landed: Landed, flight: InFlight, wants_rows: bool) -> Output:
        """Commit what a request accepted: its KV, its tokens up to a stop; retire it at its end."""
        request, walk, tally = entry.request, entry.walk, flight.tally
        tally.slots_freed += self._ledger.commit(request.request_id, len(walk.nodes), reserved)
        request.committed += len(walk.nodes)
        cut = request.stops.cut(walk.tokens, request.remaining)
        tokens = walk.tokens[: cut.emitted]
        logprobs: list[TokenLogprobs] | None = None
        if tokens and request.sampling.logprobs is not None:
            logprobs = landed.logprobs(entry, tokens)  # while the request can still fail: an end is said once
        tally.emitted += cut.emitted
        tally.discarded += len(walk.tokens) - cut.emitted
        request.ids.extend(tokens)
        request.finish_reason, request.stop_reason = cut.finish_reason, cut.stop_reason
        if entry.width and wants_rows:
            tally.add_row(entry, tokens, self._worker.lag(request.request_id), self._publish_tokens)
        if tokens and request.first_token_at is None:
            request.first_token_at = time.monotonic()
            self._reporter.request(request, "first_token", flight.plan.step)
        if request.is_finished:
            tally.slots_freed += self._retire(request)
            tally.finished += 1
            self._reporter.request(request, "finished", flight.plan.step)
        return Output(
            request_id=request.request_id,
            token_ids=tokens,
            logprobs=logprobs,
            text=cut.text,
            finish_reason=request.finish_reason,
            stop_reason=request.stop_reason,
            prompt_tokens=request.prompt_len,
            completion_tokens=request.output_len,
            verify_steps=request.verify_steps,
            correct_drafts=request.correct_drafts,
        )


def _count_flying(plan: StepPlan, sign: int) -> None:
    """Add (1) or take away (-1) what the plan's requests have in flight."""
    for row in plan.decodes:
        row.request.flying_least += sign
        row.request.flying_most += sign * row.width
        row.request.flying_emits += sign
    for chunk in plan.prefills:
        chunk.request.flying_least += sign * chunk.length
        chunk.request.flying_most += sign * chunk.length
        chunk.request.flying_emits += sign * chunk.is_last
