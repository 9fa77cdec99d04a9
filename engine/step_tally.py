"""Counts of one step, gathered while it runs and published as one event at its end."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.accepted import Accepted
from engine.kv.ledger import Reservation
from engine.request import Request
from engine.spec.verify import Walk
from engine.step_plan import StepPlan
from engine.worker import Landed
from probes.events import KvUse, RequestRow, SpecInfo, StepEvent, StepShapes


@dataclass
class StepTally:
    """What a step did. Correct drafts are counted before stop and max_tokens cuts, emitted tokens after."""

    slots_written: int = 0
    written_by: str = ""
    slots_freed: int = 0
    shapes: StepShapes = field(default_factory=StepShapes)
    graph: str | None = None
    graph_hit: bool | None = None
    gpu_us: dict[str, int] = field(default_factory=dict)
    proposed: int = 0
    correct_drafts: int = 0
    correct_by_position: list[int] = field(default_factory=list)
    verified: int = 0
    emitted: int = 0
    discarded: int = 0
    overrun: int = 0
    finished: int = 0
    replanned: bool = False
    rows: list[RequestRow] = field(default_factory=list)

    def take(self, landed: Landed) -> None:
        """What the worker counted."""
        self.slots_written, self.written_by = landed.slots_written, landed.written_by
        self.shapes, self.gpu_us = landed.shapes, landed.gpu_us
        self.graph, self.graph_hit = landed.graph, landed.graph_hit

    def count_walk(self, request: Request, walk: Walk, width: int) -> None:
        """One request's verify, for the step and for the request."""
        for counts in (self, request):
            counts.proposed += width - 1
            counts.correct_drafts += walk.correct_drafts
            add_by_position(counts.correct_by_position, walk.correct_drafts)
        self.verified += 1
        request.verify_steps += 1

    def add_row(self, entry: Accepted, tokens: list[int], draft_lag: int, publish_tokens: bool) -> None:
        """A decode request's row, for the rows topic."""
        self.rows.append(
            RequestRow(
                request_id=entry.request.request_id,
                width=entry.width,
                committed=entry.request.committed,
                emitted=len(tokens),
                correct=entry.walk.correct_drafts if entry.width > 1 else None,
                draft_lag=draft_lag,
                token_ids=tokens if publish_tokens else None,
            )
        )

    def to_event(
        self,
        plan: StepPlan,
        reservation: Reservation,
        *,
        boot_id: str,
        t: float,
        scheduler: str,
        algorithm: str,
        knob_epoch: int,
        queue: int,
        draft_lag: int,
        draft_debt_bytes: int,
        kv: dict[str, KvUse],
        cpu_us: dict[str, int],
        round_us: int,
        graph_misses: int | None,
        simulated: bool,
    ) -> StepEvent:
        """The step's event; ``seq`` is the publisher's to set."""
        choice = plan.choice
        reason, detail = reason_of(plan)
        return StepEvent(
            boot_id=boot_id,
            step=plan.step,
            t=t,
            scheduler=scheduler,
            mode=plan.mode,
            reason=reason,
            reason_detail=detail,
            knob_epoch=knob_epoch,
            requests=len(plan.decodes),
            prefill_requests=len(plan.prefills),
            prefill_tokens=plan.prefill_tokens,
            queue=queue,
            widths={str(width): count for width, count in plan.widths.items()},
            slots_expected=plan.slots,
            slots_reserved=reservation.slots,
            slots_written=self.slots_written,
            slots_freed=self.slots_freed,
            pages_allocated=reservation.pages_allocated,
            shapes=self.shapes,
            graph=self.graph,
            graph_hit=self.graph_hit,
            graph_misses=graph_misses,
            spec_info=SpecInfo(
                algorithm=algorithm, steps=choice.steps, topk=choice.topk, draft_tokens=choice.draft_tokens
            )
            if plan.speculates
            else None,
            proposed=self.proposed,
            correct_drafts=self.correct_drafts,
            correct_by_position=self.correct_by_position,
            verified=self.verified,
            emitted=self.emitted,
            discarded=self.discarded,
            overrun=self.overrun,
            accept_length=1 + self.correct_drafts / self.verified if self.verified else None,
            draft_lag=draft_lag,
            draft_debt_bytes=draft_debt_bytes,
            kv=kv,
            cpu_us=cpu_us,
            gpu_us=self.gpu_us,
            round_us=round_us,
            simulated=simulated,
            finished=self.finished,
            replanned=self.replanned,
            trace={
                "decision": f"{choice.reason}: engine.spec.policy:ThresholdPolicy.decide",
                "slots_expected": plan.set_by,
                "slots_reserved": reservation.set_by,
                "slots_written": self.written_by,
                "widths": "engine.step_plan:widths_of",
            },
        )


def add_by_position(counts: list[int], correct: int) -> None:
    """Count a run of ``correct`` accepted drafts: one at every depth up to it."""
    counts.extend([0] * (correct - len(counts)))
    for depth in range(correct):
        counts[depth] += 1


def reason_of(plan: StepPlan) -> tuple[str, str]:
    """Why the step ran as it did: the policy's reason, unless something closer to the step overruled it."""
    choice = plan.choice
    if not choice.speculate or plan.speculates:
        return choice.reason, choice.detail
    if not plan.decodes:
        return "prefill", f"{plan.prefill_tokens} prompt tokens in a step of their own; then: {choice.detail}"
    if any(row.request.stays_plain for row in plan.decodes):
        return "sticky", f"draft_sync=sticky: requests that fell back stay plain; policy: {choice.detail}"
    return "near_end", f"every request has one token left to emit; policy: {choice.detail}"
