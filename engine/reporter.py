"""What the engine says on the bus: steps, requests, alerts."""

from __future__ import annotations

import logging
import time
from typing import Any

import msgspec

from engine.event_sink import EventSink
from engine.kv.ledger import KvLedger, Reservation
from engine.request import Request
from engine.scheduler import Scheduler
from engine.stage_clock import StepClock
from engine.step_plan import StepPlan
from engine.step_tally import StepTally
from engine.worker import Worker
from probes.events import AlertEvent, AlertLevel, KvUse, RequestEvent, RequestPhase, RowsEvent, StepEvent

log = logging.getLogger(__name__)


class Reporter:
    """Makes events from the engine's state and hands them to the sink. Never blocks, never computes on tensors."""

    def __init__(
        self,
        sink: EventSink,
        boot_id: str,
        scheduler: Scheduler,
        ledger: KvLedger,
        worker: Worker,
        *,
        simulated: bool = False,
        publish_tokens: bool = False,
    ) -> None:
        """``simulated``: acceptance or weights are not a real model's, and every step says so. ``publish_tokens``: a
        request's events have what it takes to run it again, token ids included."""
        self.sink = sink
        self._boot_id = boot_id
        self._scheduler = scheduler
        self._ledger = ledger
        self._worker = worker
        self._simulated = simulated
        self._publish_tokens = publish_tokens
        self._graph_misses: int | None = None  # steps that ran eager; None until there was a step that looked for one

    def kv_use(self) -> dict[str, KvUse]:
        """Slots in use of both pools."""
        use = {"target": KvUse(used=self._ledger.used, total=self._ledger.total)}
        if self._worker.algorithm is not None:
            use["draft"] = KvUse(used=self._worker.used_slots(), total=self._ledger.total)
        return use

    def step(
        self, plan: StepPlan, reservation: Reservation, tally: StepTally, knob_epoch: int, clock: StepClock
    ) -> StepEvent:
        """The step's event, and its rows when somebody asked for them."""
        worker, sink = self._worker, self.sink
        running = self._scheduler.running
        if tally.graph_hit is not None:
            self._graph_misses = (self._graph_misses or 0) + (not tally.graph_hit)
        event = tally.to_event(
            plan,
            reservation,
            boot_id=self._boot_id,
            t=sink.t(),
            scheduler=self._scheduler.name,
            algorithm=worker.algorithm or "",
            knob_epoch=knob_epoch,
            queue=len(self._scheduler.waiting),
            draft_lag=sum(worker.lag(r.request_id) for r in running) if worker.algorithm else 0,
            draft_debt_bytes=worker.debt_bytes(),
            kv=self.kv_use(),
            cpu_us=clock.stages_us(),
            round_us=clock.round_us,
            graph_misses=self._graph_misses,
            simulated=self._simulated,
        )
        sink.publish(event)
        if tally.rows:
            sink.publish(RowsEvent(boot_id=self._boot_id, step=plan.step, t=sink.t(), rows=tally.rows))
        return event

    def request(self, request: Request, phase: RequestPhase, step: int, error: str | None = None) -> None:
        """A request changed phase."""
        first = request.first_token_at
        tells_ask = self._publish_tokens and phase == "arrived"
        tells_answer = self._publish_tokens and phase in ("finished", "aborted")
        self.sink.publish(
            RequestEvent(
                boot_id=self._boot_id,
                step=step,
                t=self.sink.t(),
                request_id=request.request_id,
                phase=phase,
                prompt_tokens=request.prompt_len,
                output_tokens=request.output_len,
                max_tokens=request.max_tokens,
                finish_reason=request.finish_reason,
                verify_steps=request.verify_steps,
                correct_drafts=request.correct_drafts,
                proposed=request.proposed,
                accept_length=request.accept_length,
                ttft_ms=None if first is None else (first - request.arrived) * 1e3,
                e2e_ms=(time.monotonic() - request.arrived) * 1e3 if request.is_finished else None,
                error=error,
                prompt_token_ids=request.ids[: request.prompt_len] if tells_ask else None,
                sampling=msgspec.to_builtins(request.sampling) if tells_ask else None,
                seed=request.seed if tells_ask else None,
                output_token_ids=request.ids[request.prompt_len :] if tells_answer else None,
            )
        )

    def alert(self, code: str, level: AlertLevel, message: str, step: int, data: dict[str, Any] | None = None) -> None:
        """Something an operator should look at; also logged."""
        log.log(logging.ERROR if level == "error" else logging.WARNING, "%s: %s", code, message)
        self.sink.publish(
            AlertEvent(
                boot_id=self._boot_id,
                step=step,
                t=self.sink.t(),
                code=code,
                level=level,
                message=message,
                data=data or {},
            )
        )
