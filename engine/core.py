"""The engine: one step after another through the stages of docs/architecture.md.

schedule, decide, plan, reserve, draft, run, accept, sync, publish: in this order, because whatever is allocated must be
sized from a decision that is already made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from engine.admission import Admission, RequestRefusedError
from engine.config import EngineConfig
from engine.event_sink import EventSink, NoSink
from engine.failures import StepFailures
from engine.invariants import check_invariants
from engine.ipc import Failed, Output
from engine.kv.ledger import KvExhaustedError, KvLedger, Reservation
from engine.landing import InFlight, Landing
from engine.models.shapes import LlamaShape
from engine.reporter import Reporter
from engine.request import Request
from engine.sampling_params import SamplingParams
from engine.scheduler import Candidates, QueueFullError, Scheduler
from engine.spec.choice import SpecChoice
from engine.spec.policy import ThresholdPolicy
from engine.stage_clock import StageClock, StepClock
from engine.step_plan import PlanMismatch, StepPlan, check_reservation, drafting
from engine.step_tally import StepTally
from engine.text.tokenizer import Tokenizer
from engine.watch import StepWatch
from engine.worker import Worker
from probes.control import Applied, Refused, SetKnobs
from probes.knob_board import KnobBoard
from probes.knobs import KnobError, Knobs


class EngineCore:
    """Requests in, tokens out, one step a call. Not thread-safe: one loop owns it.

    With the sync scheduler a step is launched and lands in one call. With overlap a call launches the next step and
    then lands the one before it, so that the host works while the device does.
    """

    def __init__(
        self,
        config: EngineConfig,
        shape: LlamaShape,
        make_worker: Callable[[KvLedger], Worker],
        tokenizer: Tokenizer | None = None,
        sink: EventSink | None = None,
        boot_id: str = "",
        *,
        overlap: bool = False,
        simulated: bool = False,
    ) -> None:
        self.config = config
        self.shape = shape
        self.tokenizer = tokenizer
        self.boot_id = boot_id
        self.overlap = overlap
        self.max_model_len = min(config.max_model_len, shape.max_position)
        self.ledger = KvLedger(config.kv_tokens, config.page_size)
        self.worker = make_worker(self.ledger)
        self.scheduler = Scheduler(
            self.ledger,
            max_running=config.max_running,
            max_queue=config.max_queue,
            prefill_chunk=config.prefill_chunk,
            name="overlap" if overlap else "sync",
        )
        self.policy = ThresholdPolicy()
        sink = sink or NoSink()
        self.reporter = Reporter(
            sink,
            boot_id,
            self.scheduler,
            self.ledger,
            self.worker,
            simulated=simulated,
            publish_tokens=config.publish_tokens,
        )
        self._watch = StepWatch(self.reporter.alert)
        self.check_knobs(config.knobs)
        self.knobs = KnobBoard(config.knobs, boot_id=boot_id, t=sink.t, publish=sink.publish, validate=self.check_knobs)
        self.step_number = 0  # of the newest step that was launched
        self.after_reserve: Callable[[StepPlan], StepPlan] | None = None
        """Fault injection: tampers with the plan once slots are reserved, as engines do that decide too late."""
        self._admission = Admission(shape, tokenizer, self.ledger, self.max_model_len)
        self._clock = StageClock(sink)
        self._failures = StepFailures(
            self.reporter, lambda request_id: self.scheduler.find(request_id) is not None, self._retire
        )
        self._landing = Landing(
            self.worker, self.ledger, self.reporter, self._retire, publish_tokens=config.publish_tokens
        )
        self._flight: InFlight | None = None  # the step that is launched and has not landed
        self._outputs: list[Output | Failed] = []  # of the step that lands; kept apart so that a failure loses none

    # -- what may be asked from outside, between steps --------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        return self.scheduler.has_work or self._flight is not None

    def check_knobs(self, knobs: Knobs) -> None:
        """Refuse knobs this engine cannot serve.

        Raises:
            KnobError: saying what is missing.
        """
        if self.worker.algorithm is not None:
            self.worker.check(knobs)
        elif knobs.spec == "on":
            raise KnobError("spec=on needs a draft model and none is loaded; start with --draft-model")

    def set_knobs(self, request: SetKnobs) -> Applied | Refused:
        """Change knobs from the next step on."""
        return self.knobs.apply(request, self.step_number + 1)

    def take_back_due(self) -> None:
        """Take back the knob changes whose time is over; ``step`` does so by itself, an idle loop asks for it."""
        self.knobs.take_back_due(self.step_number + 1)

    def add(self, request_id: str, prompt_ids: Sequence[int], sampling: SamplingParams) -> Request:
        """Queue a request.

        Raises:
            RequestRefusedError: it can never run, or too many wait; nothing was queued.
        """
        request = self._admission.make_request(request_id, prompt_ids, sampling)
        try:
            self.scheduler.add(request)
        except QueueFullError as error:
            raise RequestRefusedError(str(error), status=429, code="queue_full") from error
        self.reporter.request(request, "arrived", self.step_number)
        return request

    def abort(self, request_id: str) -> bool:
        """Drop a request wherever it is and free its slots; False when it is not here (any more)."""
        request = self.scheduler.find(request_id)
        if request is None:
            return False
        request.finish_reason = "abort"
        self._retire(request)
        self.reporter.request(request, "aborted", self.step_number)
        if not self.scheduler.has_work:  # no step will come that says so: a stage left standing would count as stuck
            if self._flight is not None:
                self._land_flight()
            self.idle()
        return True

    def abort_all(self) -> list[str]:
        """Abort everything; the ids."""
        ids = [request.request_id for request in (*self.scheduler.running, *self.scheduler.waiting)]
        for request_id in ids:
            self.abort(request_id)
        return ids

    def idle(self) -> None:
        """Say that the loop waits for work."""
        self.policy.reset()
        self._clock.idle(self.step_number)

    @contextmanager
    def rehearsal(self, knobs: Knobs) -> Iterator[None]:
        """Steps inside run under these knobs and are neither published nor counted; nothing of them is left after."""
        sink, before = self.reporter.sink, self.knobs.knobs
        self.reporter.sink, self.knobs.knobs = NoSink(), knobs
        try:
            yield
        finally:
            self.abort_all()
            if self._flight is not None:
                self._land_flight()
                self._outputs = []
            self.reporter.sink, self.knobs.knobs = sink, before
            self._watch = StepWatch(self.reporter.alert)
            self.step_number = 0
            self.idle()

    # -- the step ---------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def step(self) -> list[Output | Failed]:
        """Run one step; what the landed one gave each request. One that fails costs its own requests, not the engine.

        Raises:
            RuntimeError: several steps in a row failed.
            AssertionError: an invariant broke (with ``debug_checks``).
        """
        number = self.step_number + 1
        self.take_back_due()
        if self._flight is not None and self.worker.needs_landed and self._flight.plan.speculates:
            self._land_flight()  # its lengths are not known before
        try:
            flight = self._launch(number)
        except KvExhaustedError:  # by the furthest that the step in flight may come; once it landed, by where it is
            self._land_flight()
            flight = self._launch(number)
        if self._flight is not None:
            self._land_flight()
        self._flight = flight
        if flight is not None and not self.overlap:
            self._land_flight()
        outputs, self._outputs = self._outputs, []
        if self.config.debug_checks:
            try:
                check_invariants(self.scheduler.running, self.ledger, self.worker)
            except AssertionError as error:
                self.reporter.alert("invariant", "error", str(error), number)
                raise
        return outputs

    def _launch(self, number: int) -> InFlight | None:
        """Schedule, decide, plan, reserve, and start the step; None when there is nothing to run, or it failed.

        Raises:
            KvExhaustedError: pages are short while lengths are only known to lie between two numbers.
        """
        clock = self._clock.begin_step("schedule", number)
        candidates = self.scheduler.schedule()
        if not candidates.decodes and not candidates.prefills:
            return None
        self.step_number = number
        victims = [*candidates.decodes, *(chunk.request for chunk in candidates.prefills)]
        flight = None
        try:
            prepared = self._prepare(number, candidates, clock)
            if prepared is not None:
                plan, reservation, tally = prepared
                victims = plan.requests
                knobs = self.knobs.knobs
                if knobs.draft_sync == "sticky" and self.worker.algorithm is not None:
                    for row in plan.decodes:
                        row.request.stays_plain |= row.width == 1
                launched = self.worker.launch(plan, reservation, knobs.draft_sync, clock)
                flight = InFlight(plan, reservation, tally, clock, self.knobs.knob_epoch, launched)
                self._landing.take_off(flight)
        except Exception as error:  # a bug or a failed kernel: the step's requests end, the engine goes on
            if isinstance(error, KvExhaustedError) and self._flight is not None:
                self.step_number = number - 1  # what lands now may leave nothing to run
                raise
            self._failures.step_broke(number, victims, error, self._outputs)
        self._clock.take_off(clock)
        return flight

    def _land_flight(self) -> None:
        """Land the step in flight."""
        flight, self._flight = self._flight, None
        assert flight is not None
        victims = [request for request in flight.plan.requests if not request.is_finished]
        try:
            self._watch.see(self._landing.land(flight, self._outputs))
            self._failures.step_ran()
        except Exception as error:
            self._landing.touch_down(flight)
            self._failures.step_broke(flight.plan.step, victims, error, self._outputs)

    def _prepare(
        self, number: int, candidates: Candidates, clock: StepClock
    ) -> tuple[StepPlan, Reservation, StepTally] | None:
        """Decide, plan, reserve. A mismatch is rolled back and planned once more; a second one fails its requests."""
        for attempt in (1, 2):
            clock.begin("decide")
            choice = self._decide(candidates)
            clock.begin("plan")
            plan = self.scheduler.plan(number, choice, candidates, even=self._may_even(choice, candidates))
            clock.begin("reserve")
            reserved_rows = plan.rows
            reservation = self.ledger.reserve(reserved_rows)
            try:
                if self.after_reserve is not None:
                    plan = self.after_reserve(plan)
                check_reservation(plan, reservation)
                self.scheduler.note_planned(plan, candidates)
                return plan, reservation, StepTally(replanned=attempt == 2)
            except PlanMismatch as mismatch:
                self.ledger.roll_back(reserved_rows)
                self._failures.mismatch(number, attempt, mismatch, plan.requests, self._outputs)
        return None

    def _decide(self, candidates: Candidates) -> SpecChoice:
        decodes = candidates.decodes

        def room(width: int) -> str | None:
            need = self._pages_for(decodes, drafting(decodes, even=False), width)
            free = self.ledger.allocator.free_pages
            if need <= free:
                return None
            return f"verifying {width} tokens a request needs {need} more KV pages, {free} free"

        has_draft = self.worker.algorithm is not None
        return self.policy.decide(self.knobs.knobs, self.knobs.knob_epoch, candidates.running, has_draft, room)

    def _may_even(self, choice: SpecChoice, candidates: Candidates) -> bool:
        """Whether last tokens are verified in trees too: the worker gains by it, and their trees have room as well."""
        decodes = candidates.decodes
        if not (choice.speculate and self.worker.even_widths) or all(request.can_draft for request in decodes):
            return False  # in most steps nothing is to be evened: `room` has counted them all
        need = self._pages_for(decodes, drafting(decodes, even=True), choice.draft_tokens)
        return need <= self.ledger.allocator.free_pages

    def _pages_for(self, decodes: Sequence[Request], drafts: Sequence[bool], width: int) -> int:
        """New pages that verifying ``width`` tokens takes of each that drafts."""
        trees = (request.request_id for request, drafted in zip(decodes, drafts, strict=True) if drafted)
        return sum(self.ledger.extra_pages(request_id, width) for request_id in trees)

    def _retire(self, request: Request) -> int:
        """Take a request out and free what it holds; the slots that were in use."""
        self.scheduler.remove(request)
        self.worker.forget(request.request_id)
        return self.ledger.release(request.request_id)
