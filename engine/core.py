"""The engine: one step after another through the stages of docs/architecture.md.

schedule, decide, plan, reserve, draft, run, accept, sync, publish: in this order, because whatever is allocated must be
sized from a decision that is already made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch

from engine.acceptance import Accepted, accept
from engine.admission import Admission, RequestRefusedError
from engine.config import EngineConfig
from engine.event_sink import EventSink, NoSink
from engine.failures import StepFailures
from engine.ipc import Failed, Output, TokenLogprobs
from engine.kv.ledger import KvLedger, Reservation
from engine.models.llama import LlamaModel
from engine.reporter import Reporter
from engine.request import Request
from engine.runner import WRITTEN_BY, Runner, RunOutput
from engine.sampler import report_logprobs
from engine.sampling_params import SamplingParams
from engine.scheduler import Candidates, QueueFullError, Scheduler
from engine.spec.choice import SpecChoice
from engine.spec.policy import ThresholdPolicy
from engine.spec.proposer import Proposer
from engine.stage_clock import StageClock
from engine.step_plan import PlanMismatch, StepPlan, check_reservation
from engine.step_tally import StepTally
from engine.text.tokenizer import Tokenizer
from engine.watch import StepWatch
from probes.control import Applied, Refused, SetKnobs
from probes.knob_board import KnobBoard
from probes.knobs import KnobError, Knobs


class EngineCore:
    """Requests in, tokens out, one step a call. Not thread-safe: one loop owns it."""

    def __init__(
        self,
        config: EngineConfig,
        model: LlamaModel,
        tokenizer: Tokenizer | None = None,
        make_proposer: Callable[[KvLedger], Proposer] | None = None,
        sink: EventSink | None = None,
        boot_id: str = "",
    ) -> None:
        self.config = config
        self.model = model
        self.tokenizer = tokenizer
        self.boot_id = boot_id
        self.max_model_len = min(config.max_model_len, model.shape.max_position)
        self.ledger = KvLedger(config.kv_tokens, config.page_size)
        self.proposer = make_proposer(self.ledger) if make_proposer is not None else None
        self.runner = Runner(model, self.ledger, self.proposer.aux_layers if self.proposer else ())
        self.scheduler = Scheduler(
            self.ledger,
            max_running=config.max_running,
            max_queue=config.max_queue,
            prefill_chunk=config.prefill_chunk,
        )
        self.policy = ThresholdPolicy()
        sink = sink or NoSink()
        self.reporter = Reporter(sink, boot_id, self.scheduler, self.ledger, self.proposer)
        self._watch = StepWatch(self.reporter.alert)
        self.check_knobs(config.knobs)
        self.knobs = KnobBoard(config.knobs, boot_id=boot_id, t=sink.t, publish=sink.publish, validate=self.check_knobs)
        self.step_number = 0  # of the newest step that ran
        self.after_reserve: Callable[[StepPlan], StepPlan] | None = None
        """Fault injection: tampers with the plan once slots are reserved, as engines do that decide too late."""
        self._admission = Admission(model.shape, tokenizer, self.ledger, self.max_model_len)
        self._clock = StageClock(sink)
        self._failures = StepFailures(
            self.reporter, lambda request_id: self.scheduler.find(request_id) is not None, self._retire
        )
        self._outputs: list[Output | Failed] = []  # of the step that runs; kept apart so that a failure loses none

    # -- what may be asked from outside, between steps --------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        return self.scheduler.has_work

    def check_knobs(self, knobs: Knobs) -> None:
        """Refuse knobs this engine cannot serve.

        Raises:
            KnobError: saying what is missing.
        """
        if self.proposer is not None:
            self.proposer.check(knobs)
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
        if not self.has_work:  # no step will come that says so: a stage left standing would count as stuck
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
            self.reporter.sink, self.knobs.knobs = sink, before
            self._watch = StepWatch(self.reporter.alert)
            self.step_number = 0
            self.idle()

    # -- the step ---------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def step(self) -> list[Output | Failed]:
        """Run one step; what it gave each request. A step that fails costs its own requests, not the engine.

        Raises:
            RuntimeError: several steps in a row failed.
            AssertionError: an invariant broke (with ``debug_checks``).
        """
        number = self.step_number + 1
        self.take_back_due()
        self._clock.begin_step("schedule", number)
        candidates = self.scheduler.schedule()
        if not candidates.decodes and not candidates.prefills:
            return []
        self.step_number = number
        victims = [*candidates.decodes, *(chunk.request for chunk in candidates.prefills)]
        try:
            prepared = self._prepare(number, candidates)
            if prepared is not None:
                plan, reservation, tally = prepared
                victims = plan.requests
                self._execute(plan, reservation, tally)
            self._failures.step_ran()
        except Exception as error:  # a bug or a failed kernel: the step's requests end, the engine goes on
            self._failures.step_broke(number, victims, error, self._outputs)
        outputs, self._outputs = self._outputs, []
        if self.config.debug_checks:
            try:
                self.check_invariants()
            except AssertionError as error:
                self.reporter.alert("invariant", "error", str(error), number)
                raise
        return outputs

    def _prepare(self, number: int, candidates: Candidates) -> tuple[StepPlan, Reservation, StepTally] | None:
        """Decide, plan, reserve. A mismatch is rolled back and planned once more; a second one fails its requests."""
        for attempt in (1, 2):
            self._clock.begin("decide", number)
            choice = self._decide(candidates.decodes)
            self._clock.begin("plan", number)
            plan = self.scheduler.plan(number, choice, candidates)
            self._clock.begin("reserve", number)
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

    def _decide(self, decodes: list[Request]) -> SpecChoice:
        def room(width: int) -> str | None:
            need = sum(self.ledger.extra_pages(r.request_id, width) for r in decodes if r.can_draft)
            free = self.ledger.allocator.free_pages
            if need <= free:
                return None
            return f"verifying {width} tokens a request needs {need} more KV pages, {free} free"

        has_draft = self.proposer is not None
        return self.policy.decide(self.knobs.knobs, self.knobs.knob_epoch, len(decodes), has_draft, room)

    def _execute(self, plan: StepPlan, reservation: Reservation, tally: StepTally) -> None:
        """Draft, run, accept, sync, publish."""
        clock, number = self._clock, plan.step
        trees = None
        drafted = [row.request for row in plan.decodes if row.width > 1]
        if drafted and self.proposer is not None:
            clock.begin("draft", number)
            trees = self.proposer.propose(drafted, plan.choice)
        clock.begin("run", number)
        ran = self.runner.run(plan, reservation, trees)
        tally.slots_written, tally.shapes = ran.slots_written, ran.shapes
        if ran.slots_written != reservation.slots:
            raise PlanMismatch("slots written", reservation.slots, reservation.set_by, ran.slots_written, WRITTEN_BY)
        clock.begin("accept", number)
        for entry in accept(plan, reservation, trees, ran, self.runner.pool):
            output = self._commit(entry, ran, tally)
            if entry.walk.tokens:
                self._outputs.append(output)
        clock.begin("sync", number)
        if self.proposer is not None:
            self.proposer.settle(self.knobs.knobs.draft_sync)
        clock.begin("publish", number)
        self._watch.see(self.reporter.step(plan, reservation, tally, self.knobs.knob_epoch, clock))

    def _commit(self, entry: Accepted, ran: RunOutput, tally: StepTally) -> Output:
        """Commit what a request accepted: its KV, its tokens up to a stop, the draft's share; retire it at its end."""
        request, walk = entry.request, entry.walk
        if entry.width > 1:
            tally.count_walk(request, walk, entry.width)
        tally.slots_freed += self.ledger.commit(request.request_id, len(walk.nodes))
        request.committed += len(walk.nodes)
        cut = request.stops.cut(walk.tokens, request.remaining)
        tokens = walk.tokens[: cut.emitted]
        tally.emitted += cut.emitted
        tally.discarded += len(walk.tokens) - cut.emitted
        request.ids.extend(tokens)
        request.finish_reason, request.stop_reason = cut.finish_reason, cut.stop_reason
        self._feed_draft(entry, ran)
        if entry.width and self.reporter.sink.wants("rows"):
            lag = self.proposer.lag(request.request_id) if self.proposer else 0
            tally.add_row(entry, tokens, lag, self.config.publish_tokens)
        if tokens and request.first_token_at is None:
            request.first_token_at = time.monotonic()
            self.reporter.request(request, "first_token", self.step_number)
        if request.is_finished:
            tally.slots_freed += self._retire(request)
            tally.finished += 1
            self.reporter.request(request, "finished", self.step_number)
        return Output(
            request_id=request.request_id,
            token_ids=tokens,
            logprobs=_logprobs(entry, ran, tokens),
            text=cut.text,
            finish_reason=request.finish_reason,
            stop_reason=request.stop_reason,
            prompt_tokens=request.prompt_len,
            completion_tokens=request.output_len,
            verify_steps=request.verify_steps,
            correct_drafts=request.correct_drafts,
        )

    def _feed_draft(self, entry: Accepted, ran: RunOutput) -> None:
        """Hand the hidden states of the committed tokens to the proposer, unless the request gave up drafting."""
        request, nodes = entry.request, entry.walk.nodes
        if self.proposer is None or request.is_finished or request.stays_plain:
            return
        if entry.width == 1 and self.knobs.knobs.draft_sync == "sticky":
            request.stays_plain = True
            self.proposer.forget(request.request_id)
            return
        aux = None
        if ran.aux is not None:
            in_order = nodes[-1] == len(nodes) - 1
            rows = slice(entry.row, entry.row + len(nodes)) if in_order else torch.tensor(nodes) + entry.row
            aux = ran.aux[rows]
        self.proposer.observe(request, aux)

    def _retire(self, request: Request) -> int:
        """Take a request out and free what it holds; the slots that were in use."""
        self.scheduler.remove(request)
        if self.proposer is not None:
            self.proposer.forget(request.request_id)
        return self.ledger.release(request.request_id)

    def check_invariants(self) -> None:
        """Slots in use = committed lengths; every committed position is in the draft's KV or waits for it.

        Raises:
            AssertionError: naming both numbers.
        """
        running = self.scheduler.running
        self.ledger.check({request.request_id: request.committed for request in running})
        for request in running:
            if not request.in_prefill:
                assert len(request.ids) == request.committed + 1, (
                    f"{request.request_id}: {len(request.ids)} tokens, {request.committed} of them with KV"
                )
        if self.proposer is not None and self.proposer.aux_layers:
            known = self.proposer.used_slots() + sum(self.proposer.lag(r.request_id) for r in running)
            committed = sum(r.committed for r in running if not r.stays_plain)
            assert known == committed, f"the draft knows {known} positions, the target committed {committed}"


def _logprobs(entry: Accepted, ran: RunOutput, tokens: list[int]) -> list[TokenLogprobs] | None:
    """Log probabilities of the emitted tokens, when the request asked: each from the node it was drawn at."""
    count = entry.request.sampling.logprobs
    if count is None or not tokens:
        return None
    nodes = entry.walk.nodes[: len(tokens)] if entry.width else [0]
    return report_logprobs(ran.logits[torch.tensor(nodes) + entry.logit_row], tokens, count)
