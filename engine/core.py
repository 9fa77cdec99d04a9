"""The engine: one step after another through the stages of docs/architecture.md.

schedule, decide, plan, reserve, draft, run, accept, sync, publish: in this order, because whatever is allocated must be
sized from a decision that is already made.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Sequence

import torch

from engine.config import EngineConfig
from engine.event_sink import EventSink, NoSink
from engine.ipc import Failed, Output
from engine.kv.ledger import KvLedger, Reservation
from engine.models.llama import LlamaModel
from engine.request import Request
from engine.runner import Runner, RunOutput
from engine.sampler import draw, report_logprobs
from engine.sampling_params import SamplingError, SamplingParams
from engine.scheduler import Candidates, QueueFullError, Scheduler
from engine.spec.choice import SpecChoice
from engine.spec.draft_tree import DraftTrees
from engine.spec.policy import ThresholdPolicy
from engine.spec.proposer import Proposer
from engine.spec.verify import Walk, walk_trees
from engine.stage_clock import StageClock
from engine.step_plan import DecodeRow, PlanMismatch, StepPlan, check_reservation
from engine.step_tally import StepTally, add_by_position
from engine.stop_conditions import StopConditions
from engine.text.tokenizer import Tokenizer
from probes.control import Applied, Refused, SetKnobs
from probes.events import AlertEvent, AlertLevel, KvUse, RequestEvent, RequestPhase, RequestRow
from probes.knob_board import KnobBoard
from probes.knobs import KnobError, Knobs

log = logging.getLogger(__name__)

MAX_FAILED_STEPS = 3
"""Steps in a row that may fail before the engine gives up."""


class RequestRefusedError(ValueError):
    """A request that can never run. ``status`` and ``code`` are for the HTTP answer, ``field`` names the culprit."""

    def __init__(self, message: str, *, status: int = 400, code: str = "invalid_request", field: str | None = None):
        super().__init__(message)
        self.status, self.code, self.field = status, code, field


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
        self.sink: EventSink = sink or NoSink()
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
        self.check_knobs(config.knobs)
        self.knobs = KnobBoard(
            config.knobs, boot_id=boot_id, t=self.sink.t, publish=self.sink.publish, validate=self.check_knobs
        )
        self.step_number = 0  # of the newest step that ran
        self.after_reserve: Callable[[StepPlan], StepPlan] | None = None
        """Fault injection: tampers with the plan once slots are reserved, as engines do that decide too late."""
        self._clock = StageClock(self.sink)
        self._failed_steps = 0
        self._failures: list[Failed] = []

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

    def add(self, request_id: str, prompt_ids: Sequence[int], sampling: SamplingParams) -> Request:
        """Queue a request.

        Raises:
            RequestRefusedError: it can never run, or too many wait; nothing was queued.
        """
        request = self._make_request(request_id, prompt_ids, sampling)
        try:
            self.scheduler.add(request)
        except QueueFullError as error:
            raise RequestRefusedError(str(error), status=429, code="queue_full") from error
        self._publish_request(request, "arrived")
        return request

    def abort(self, request_id: str) -> bool:
        """Drop a request wherever it is and free its slots; False when it is not here (any more)."""
        request = self.scheduler.find(request_id)
        if request is None:
            return False
        request.finish_reason = "abort"
        self._retire(request)
        self._publish_request(request, "aborted")
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

    def kv_use(self) -> dict[str, KvUse]:
        """Slots in use of both pools."""
        use = {"target": KvUse(used=self.ledger.used, total=self.ledger.total)}
        if self.proposer is not None:
            use["draft"] = KvUse(used=self.proposer.used_slots(), total=self.ledger.total)
        return use

    def _make_request(self, request_id: str, prompt_ids: Sequence[int], sampling: SamplingParams) -> Request:
        vocab = self.model.shape.vocab_size
        try:
            sampling.check(vocab)
            eos = () if self.tokenizer is None else self.tokenizer.eos_token_ids
            stops = StopConditions.of(sampling, eos or self.model.shape.eos_token_ids, self.tokenizer)
        except SamplingError as error:
            raise RequestRefusedError(str(error), field=error.field) from error
        except ValueError as error:
            raise RequestRefusedError(str(error), field="stop") from error
        if not prompt_ids:
            raise RequestRefusedError("the prompt is empty; expected at least one token", field="prompt")
        wrong = [token for token in prompt_ids if not 0 <= token < vocab]
        if wrong:
            raise RequestRefusedError(
                f"prompt: token id {wrong[0]} is outside the vocabulary of {vocab}", field="prompt"
            )
        room = self.max_model_len - len(prompt_ids)
        if room < 1:
            raise RequestRefusedError(
                f"the prompt has {len(prompt_ids)} tokens and the context is {self.max_model_len}: no room for an "
                "answer; shorten the prompt",
                code="context_length_exceeded",
                field="prompt",
            )
        seed = secrets.randbits(63) if sampling.seed is None else sampling.seed
        request = Request(
            request_id=request_id,
            prompt_len=len(prompt_ids),
            ids=list(prompt_ids),
            sampling=sampling,
            seed=seed,
            max_tokens=min(sampling.max_tokens, room),
            stops=stops,
            arrived=time.monotonic(),
        )
        if not self.ledger.fits_ever(request.worst_case):
            raise RequestRefusedError(
                f"prompt and max_tokens need {request.worst_case} KV slots and the pool has {self.ledger.total}; "
                "lower max_tokens, shorten the prompt, or serve with more --kv-tokens",
                code="kv_pool_too_small",
                field="max_tokens",
            )
        return request

    # -- the step ---------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def step(self) -> list[Output | Failed]:
        """Run one step; what it gave each request. A step that fails costs its own requests, not the engine.

        Raises:
            RuntimeError: several steps in a row failed.
        """
        number = self.step_number + 1
        self._clock.begin_step("schedule", number)
        candidates = self.scheduler.schedule()
        if not candidates.decodes and not candidates.prefills:
            return []
        self.step_number = number
        outputs: list[Output | Failed] = []
        plan: StepPlan | None = None
        try:
            plan, reservation, replanned = self._prepare(number, candidates)
            if plan is not None and reservation is not None:
                outputs.extend(self._execute(plan, reservation, replanned))
                self._failed_steps = 0
        except Exception as error:  # a bug or a failed kernel: the step's requests end, the engine goes on
            log.exception("step %d failed", number)
            self._failed_steps += 1
            victims = plan.requests if plan is not None else [*candidates.decodes, *self._in_prefill()]
            self._alert("step_failed", "error", f"step {number} failed: {error}", {"requests": len(victims)})
            self._fail(victims, "step_failed", f"the engine's step {number} failed: {error}")
            if self._failed_steps >= MAX_FAILED_STEPS:
                raise RuntimeError(f"{self._failed_steps} steps in a row failed, the last with: {error}") from error
        outputs.extend(self._failures)
        self._failures = []
        if self.config.debug_checks:
            self.check_invariants()
        return outputs

    def _in_prefill(self) -> list[Request]:
        return [request for request in self.scheduler.running if request.in_prefill]

    def _prepare(
        self, number: int, candidates: Candidates
    ) -> tuple[StepPlan | None, Reservation | None, bool]:
        """Decide, plan and reserve; a mismatch is rolled back and planned once more, a second one fails its requests."""
        for attempt in (1, 2):
            self._clock.begin("decide", number)
            choice = self._decide(candidates.decodes)
            self._clock.begin("plan", number)
            plan = self.scheduler.plan(number, choice, candidates)
            self._clock.begin("reserve", number)
            reservation = self.ledger.reserve(plan.rows)
            reserved_rows = plan.rows
            if self.after_reserve is not None:
                plan = self.after_reserve(plan)
            try:
                check_reservation(plan, reservation)
            except PlanMismatch as mismatch:
                self.ledger.roll_back(reserved_rows)
                again = "it is planned once more" if attempt == 1 else "its requests fail"
                self._alert(
                    "plan_mismatch",
                    "error",
                    f"step {number}: {mismatch}; {again}",
                    {
                        "expected": mismatch.expected,
                        "expected_by": mismatch.expected_by,
                        "found": mismatch.found,
                        "found_by": mismatch.found_by,
                        "attempt": attempt,
                    },
                )
                if attempt == 2:
                    self._fail(plan.requests, "plan_mismatch", str(mismatch))
            else:
                return plan, reservation, attempt == 2
        return None, None, True

    def _decide(self, decodes: list[Request]) -> SpecChoice:
        def room(width: int) -> str | None:
            need = sum(
                self.ledger.extra_pages(request.request_id, width)
                for request in decodes
                if not request.stays_plain and request.remaining > 1
            )
            free = self.ledger.allocator.free_pages
            return None if need <= free else f"verifying {width} tokens a request needs {need} more KV pages, {free} free"

        return self.policy.decide(
            self.knobs.knobs, self.knobs.knob_epoch, len(decodes), self.proposer is not None, room
        )

    def _execute(self, plan: StepPlan, reservation: Reservation, replanned: bool) -> list[Output]:
        tally = StepTally(replanned=replanned)
        trees = None
        drafted = [row.request for row in plan.decodes if row.width > 1]
        if drafted and self.proposer is not None:
            self._clock.begin("draft", plan.step)
            trees = self.proposer.propose(drafted, plan.choice)
        self._clock.begin("run", plan.step)
        ran = self.runner.run(plan, reservation, trees)
        tally.slots_written, tally.shapes = ran.slots_written, ran.shapes
        if ran.slots_written != reservation.slots:
            raise PlanMismatch(
                "slots written", reservation.slots, reservation.set_by, ran.slots_written, "engine.kv.pool:KvPool.write"
            )
        self._clock.begin("accept", plan.step)
        outputs = self._accept(plan, reservation, trees, ran, tally)
        self._clock.begin("sync", plan.step)
        if self.proposer is not None:
            self.proposer.settle(self.knobs.knobs.draft_sync)
        self._clock.begin("publish", plan.step)
        self._publish_step(plan, reservation, tally)
        return outputs

    def _accept(
        self, plan: StepPlan, reservation: Reservation, trees: DraftTrees | None, ran: RunOutput, tally: StepTally
    ) -> list[Output]:
        """Draw tokens, keep the accepted path's KV, free the rest, and end what is finished."""
        walks = self._walk(plan, trees, ran)
        self._keep_paths(plan, reservation, ran, walks)
        outputs = []
        tree = 0
        for index, row in enumerate(plan.decodes):
            walk, offset = walks[index], ran.offsets[index]
            if row.width > 1 and trees is not None:
                tally.count_walk(walk, trees)
                self._count_verify(row, walk)
                tree += 1
            outputs.append(self._commit(row.request, offset, walk, offset, ran, tally, row.width))
        logit_row = sum(row.width for row in plan.decodes)
        for index, chunk in enumerate(plan.prefills, start=len(plan.decodes)):
            nodes = list(range(chunk.length))
            walk = Walk(nodes, [])
            if chunk.is_last:
                walk = Walk(nodes, self._draw_last(chunk.request, ran.logits[logit_row : logit_row + 1]))
            output = self._commit(chunk.request, ran.offsets[index], walk, logit_row, ran, tally, 0)
            logit_row += chunk.is_last
            if walk.tokens:
                outputs.append(output)
        return outputs

    def _walk(self, plan: StepPlan, trees: DraftTrees | None, ran: RunOutput) -> list[Walk]:
        """What each decode request accepted; a plain row is a tree of its root only."""
        if not plan.decodes:
            return []
        requests = [row.request for row in plan.decodes]
        width = max(row.width for row in plan.decodes)
        tokens = torch.full((len(requests), width), -1)
        parents = torch.full((len(requests), width), 0)
        parents[:, 0] = -1
        drafted = torch.tensor([row.width > 1 for row in plan.decodes])
        if trees is not None:
            tokens[drafted], parents[drafted] = trees.tokens, trees.parents
        offsets = torch.tensor(ran.offsets[: len(requests)])

        def draw_at(nodes: torch.Tensor, alive: list[int], depth: int) -> torch.Tensor:
            logits = ran.logits[offsets[alive] + nodes]
            who = [requests[i] for i in alive]
            positions = [len(request.ids) + depth for request in who]
            return draw(logits, [r.sampling for r in who], [r.seed for r in who], positions)

        return walk_trees(DraftTrees(tokens, parents), draw_at)

    def _draw_last(self, request: Request, logits: torch.Tensor) -> list[int]:
        tokens: list[int] = draw(logits, [request.sampling], [request.seed], [len(request.ids)]).tolist()
        return tokens

    def _keep_paths(
        self, plan: StepPlan, reservation: Reservation, ran: RunOutput, walks: list[Walk]
    ) -> None:
        """Gather the KV of the accepted paths to the front of their reservations, for all requests at once."""
        sources, targets = [], []
        for index, walk in enumerate(walks):
            offset = ran.offsets[index]
            for place, node in enumerate(walk.nodes):
                if node != place:
                    sources.append(offset + node)
                    targets.append(offset + place)
        if sources:
            loc = reservation.out_cache_loc
            self.runner.pool.move(loc[torch.tensor(sources)], loc[torch.tensor(targets)])

    def _count_verify(self, row: DecodeRow, walk: Walk) -> None:
        request = row.request
        request.verify_steps += 1
        request.proposed += row.width - 1
        request.correct_drafts += walk.correct_drafts
        add_by_position(request.correct_by_position, walk.correct_drafts)

    def _commit(
        self, request: Request, offset: int, walk: Walk, logit_row: int, ran: RunOutput, tally: StepTally, width: int
    ) -> Output:
        """Commit a walk: KV, tokens, stops, the draft's share. ``width`` 0: a prefill chunk."""
        kept = len(walk.nodes)
        tally.slots_freed += self.ledger.commit(request.request_id, kept)
        request.committed += kept
        cut = request.stops.cut(walk.tokens, request.remaining)
        tokens = walk.tokens[: cut.emitted]
        tally.emitted += cut.emitted
        tally.discarded += len(walk.tokens) - cut.emitted
        first = not request.output_len and bool(tokens)
        request.ids.extend(tokens)
        if first:
            request.first_token_at = time.monotonic()
        request.finish_reason, request.stop_reason = cut.finish_reason, cut.stop_reason
        self._feed_draft(request, offset, walk, ran, width)
        if width and self.sink.wants("rows"):
            tally.rows.append(self._row(request, walk, width, tokens))
        logprobs = None
        if request.sampling.logprobs is not None and tokens:
            nodes = walk.nodes[: len(tokens)] if width else [0]
            rows = torch.tensor([logit_row + node for node in nodes])
            logprobs = report_logprobs(ran.logits[rows], tokens, request.sampling.logprobs)
        if first:
            self._publish_request(request, "first_token")
        if request.is_finished:
            tally.slots_freed += self._retire(request)
            tally.finished += 1
            self._publish_request(request, "finished")
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

    def _feed_draft(self, request: Request, offset: int, walk: Walk, ran: RunOutput, width: int) -> None:
        """Hand the hidden states of the committed tokens to the proposer, unless the request gave up drafting."""
        if self.proposer is None or request.is_finished or request.stays_plain:
            return
        if width == 1 and self.knobs.knobs.draft_sync == "sticky":
            request.stays_plain = True
            self.proposer.forget(request.request_id)
            return
        aux = None
        if ran.aux is not None:
            first = offset
            if walk.nodes == list(range(len(walk.nodes))):
                aux = ran.aux[first : first + len(walk.nodes)]
            else:
                aux = ran.aux[torch.tensor([first + node for node in walk.nodes])]
        self.proposer.observe(request, aux)

    def _retire(self, request: Request) -> int:
        """Take a request out and free what it holds; the slots that were in use."""
        self.scheduler.remove(request)
        if self.proposer is not None:
            self.proposer.forget(request.request_id)
        return self.ledger.release(request.request_id)

    def _fail(self, requests: Sequence[Request], code: str, message: str) -> None:
        for request in requests:
            if request.is_finished:
                continue
            request.finish_reason = "error"
            self._retire(request)
            self._failures.append(Failed(request_id=request.request_id, status=500, code=code, message=message))
            self._publish_request(request, "aborted", error=message)

    # -- telling -----------------------------------------------------------------------------------------------------

    def _publish_step(self, plan: StepPlan, reservation: Reservation, tally: StepTally) -> None:
        proposer, sink = self.proposer, self.sink
        running = self.scheduler.running
        sink.publish(
            tally.to_event(
                plan,
                reservation,
                boot_id=self.boot_id,
                t=sink.t(),
                scheduler=self.scheduler.name,
                algorithm=proposer.name if proposer else "",
                knob_epoch=self.knobs.knob_epoch,
                queue=len(self.scheduler.waiting),
                draft_lag=sum(proposer.lag(r.request_id) for r in running) if proposer else 0,
                draft_debt_bytes=proposer.debt_bytes() if proposer else 0,
                kv=self.kv_use(),
                cpu_us=self._clock.stages_us(),
                round_us=self._clock.round_us,
                simulated=False,
            )
        )
        if tally.rows:
            from probes.events import RowsEvent

            sink.publish(RowsEvent(boot_id=self.boot_id, step=plan.step, t=sink.t(), rows=tally.rows))

    def _row(self, request: Request, walk: Walk, width: int, tokens: list[int]) -> RequestRow:
        return RequestRow(
            request_id=request.request_id,
            width=width,
            committed=request.committed,
            emitted=len(tokens),
            correct=walk.correct_drafts if width > 1 else None,
            draft_lag=self.proposer.lag(request.request_id) if self.proposer else 0,
            token_ids=tokens if self.config.publish_tokens else None,
        )

    def _publish_request(self, request: Request, phase: RequestPhase, error: str | None = None) -> None:
        now = time.monotonic()
        first = request.first_token_at
        self.sink.publish(
            RequestEvent(
                boot_id=self.boot_id,
                step=self.step_number,
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
                e2e_ms=(now - request.arrived) * 1e3 if request.is_finished else None,
                error=error,
            )
        )

    def _alert(self, code: str, level: AlertLevel, message: str, data: dict[str, object]) -> None:
        log.log(logging.ERROR if level == "error" else logging.WARNING, "%s: %s", code, message)
        self.sink.publish(
            AlertEvent(
                boot_id=self.boot_id,
                step=self.step_number,
                t=self.sink.t(),
                code=code,
                level=level,
                message=message,
                data=data,
            )
        )

    def check_invariants(self) -> None:
        """Slots in use = committed lengths; the draft is never ahead of the target, and level with it but for its lag.

        Raises:
            AssertionError: naming both numbers.
        """
        running = self.scheduler.running
        self.ledger.check({request.request_id: request.committed for request in running})
        for request in running:
            known = self.ledger.committed(request.request_id)
            assert known == request.committed, f"{request.request_id}: {known} slots, {request.committed} committed"
            if not request.in_prefill:
                assert len(request.ids) == request.committed + 1, (
                    f"{request.request_id}: {len(request.ids)} tokens, {request.committed} of them with KV"
                )
        if self.proposer is not None and not any(request.stays_plain for request in running):
            drafted = self.proposer.used_slots() + sum(self.proposer.lag(r.request_id) for r in running)
            target = self.ledger.used
            if self.proposer.aux_layers:
                assert drafted == target, f"the draft knows {drafted} positions, the target committed {target}"
