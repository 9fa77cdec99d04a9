"""The worker whose lengths and tokens stand on the host: it runs a step when it is launched.

Batches are built from Python lists, attention gets dense views of exact lengths: what is fastest on a CPU, where a
kernel call waits for its result anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from engine.acceptance import accept
from engine.accepted import Accepted
from engine.ipc import TokenLogprobs
from engine.kv.ledger import KvLedger, Reservation
from engine.models.llama import LlamaModel
from engine.request_view import RequestView
from engine.runner import WRITTEN_BY, Runner, RunOutput
from engine.sampler import report_logprobs
from engine.spec.proposer import Proposer
from engine.stage_clock import StepClock
from engine.step_plan import StepPlan
from engine.worker import Landed
from probes.knobs import DraftSync, Knobs


@dataclass(frozen=True)
class _Ran:
    """A step that ran: what `HostWorker.land` hands out."""

    entries: list[Accepted]
    output: RunOutput
    logit_rows: dict[str, int]  # request id -> row of the logits that its first draw came from


class HostWorker:
    """Drafts with a proposer, runs the target, accepts, feeds the proposer."""

    name = "host"
    needs_landed = False
    even_widths = False  # rows of any widths share one flat batch

    def __init__(
        self,
        model: LlamaModel,
        ledger: KvLedger,
        make_proposer: Callable[[KvLedger], Proposer] | None = None,
        *,
        simulate_accept: float | None = None,
    ) -> None:
        """``simulate_accept``: nodes that verifies keep, on average, whatever is drawn; None: what is right."""
        self.model = model
        self._simulate_accept = simulate_accept
        self.proposer = make_proposer(ledger) if make_proposer is not None else None
        self.runner = Runner(model, ledger, self.aux_layers)
        self._views: dict[str, RequestView] = {}

    @property
    def algorithm(self) -> str | None:
        return self.proposer.name if self.proposer is not None else None

    @property
    def aux_layers(self) -> tuple[int, ...]:
        return self.proposer.aux_layers if self.proposer is not None else ()

    def check(self, knobs: Knobs) -> None:
        if self.proposer is not None:
            self.proposer.check(knobs)

    def launch(self, plan: StepPlan, reservation: Reservation, sync: DraftSync, clock: StepClock) -> _Ran:
        """Run the step; nothing is left to wait for.

        Raises:
            PlanMismatch: the trees or the batch are not what the plan and the reservation say.
        """
        for request in plan.requests:
            if request.request_id not in self._views:
                self._views[request.request_id] = RequestView.of(request)
        trees = None
        drafted = [self._views[row.request.request_id] for row in plan.decodes if row.width > 1]
        if drafted and self.proposer is not None:
            clock.begin("draft")
            trees = self.proposer.propose(drafted, plan.choice)
        clock.begin("run")
        ran = self.runner.run(plan, reservation, trees, self._views)
        clock.begin("accept")
        entries = accept(plan, trees, ran, self.runner.pool, self._views, self._simulate_accept)
        clock.begin("sync")
        for entry, offset in zip(entries, ran.offsets, strict=True):
            view = self._views[entry.request.request_id]
            view.committed += len(entry.walk.nodes)
            view.ids.extend(entry.walk.tokens)
            self._feed(entry, view, offset, ran)
        if self.proposer is not None:
            self.proposer.settle(sync)
        return _Ran(entries, ran, self._logit_rows(plan, ran))

    def land(self, launched: _Ran) -> Landed:
        """The step's result."""
        ran = launched.output

        def logprobs(entry: Accepted, tokens: list[int]) -> list[TokenLogprobs]:
            nodes = entry.walk.nodes[: len(tokens)] if entry.width else [0]
            rows = torch.tensor(nodes) + launched.logit_rows[entry.request.request_id]
            return report_logprobs(ran.logits[rows], tokens, entry.request.sampling.logprobs or 0)

        return Landed(launched.entries, ran.slots_written, WRITTEN_BY, ran.shapes, logprobs=logprobs)

    def forget(self, request_id: str) -> None:
        self._views.pop(request_id, None)
        if self.proposer is not None:
            self.proposer.forget(request_id)

    def lag(self, request_id: str) -> int:
        return self.proposer.lag(request_id) if self.proposer is not None else 0

    def used_slots(self) -> int:
        return self.proposer.used_slots() if self.proposer is not None else 0

    def debt_bytes(self) -> int:
        return self.proposer.debt_bytes() if self.proposer is not None else 0

    def _feed(self, entry: Accepted, view: RequestView, offset: int, ran: RunOutput) -> None:
        """Hand the hidden states of the committed tokens to the proposer, unless the request gave up drafting."""
        if self.proposer is None:
            return
        if entry.request.stays_plain:
            self.proposer.forget(view.request_id)
            return
        aux = None
        if ran.aux is not None:
            nodes = entry.walk.nodes
            in_order = nodes[-1] == len(nodes) - 1
            rows = slice(offset, offset + len(nodes)) if in_order else torch.tensor(nodes) + offset
            aux = ran.aux[rows]
        self.proposer.observe(view, aux)

    @staticmethod
    def _logit_rows(plan: StepPlan, ran: RunOutput) -> dict[str, int]:
        rows = {row.request.request_id: offset for row, offset in zip(plan.decodes, ran.offsets, strict=False)}
        row = sum(decode.width for decode in plan.decodes)
        for chunk in plan.prefills:
            rows[chunk.request.request_id] = row
            row += chunk.is_last
        return rows
