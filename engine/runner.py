"""The target's forward over a planned step, from lengths that the host knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from engine.attention.dense import AttentionPlan, Segment
from engine.kv.ledger import KvLedger, Reservation
from engine.models.llama import ForwardBatch, LlamaModel
from engine.request_view import RequestView
from engine.spec.draft_tree import DraftTrees
from engine.step_plan import PlanMismatch, StepPlan
from probes.events import StepShapes

WRITTEN_BY = "engine.kv.pool:KvPool.write"
"""Where ``slots_written`` is counted."""


@dataclass(frozen=True)
class RunOutput:
    """What the forward gave. Row offsets follow the plan's order."""

    logits: torch.Tensor  # [M, vocab]: every row of the decodes, then the last row of each last prefill chunk
    aux: torch.Tensor | None  # [N, n_aux * hidden]
    out_cache_loc: torch.Tensor  # int64 [N], the slot of each row
    offsets: list[int]  # first flat row of each request of the plan
    slots_written: int
    shapes: StepShapes


class Runner:
    """Builds the flat batch from the plan and nothing else, and runs the model over the KV pool."""

    def __init__(self, model: LlamaModel, ledger: KvLedger, aux_layers: tuple[int, ...]) -> None:
        self.model = model
        self.pool = model.make_pool(ledger.total)
        self._ledger = ledger
        self._aux_layers = aux_layers

    def run(
        self, plan: StepPlan, reservation: Reservation, trees: DraftTrees | None, views: Mapping[str, RequestView]
    ) -> RunOutput:
        """One forward. ``views``: request id -> how far the request is.

        Raises:
            PlanMismatch: the drafted trees are not as wide as the plan, or the batch is not as long.
        """
        drafted = [row for row in plan.decodes if row.width > 1]
        if drafted and (trees is None or trees.width != drafted[0].width):
            width = 0 if trees is None else trees.width
            raise PlanMismatch("verify width", drafted[0].width, plan.set_by, width, "the proposer")
        ids: list[int] = []
        positions: list[torch.Tensor] = []
        segments: list[Segment] = []
        logit_rows: list[int] = []
        offsets: list[int] = []
        spans: list[tuple[str, int, int]] = []  # (request id, first position, tokens) of each request of the plan
        if trees is not None:
            tree_ids, sees, depths = trees.tokens.tolist(), trees.visibility(), trees.depths()
        tree = 0
        for row in plan.decodes:
            view = views[row.request.request_id]
            offsets.append(len(ids))
            start = view.committed
            spans.append((view.request_id, start, row.width))
            if row.width == 1:
                ids.append(view.ids[-1])
                positions.append(torch.tensor([start]))
                segments.append(Segment(self._ledger.slots_of(view.request_id), start, 1))
            else:
                ids.extend(tree_ids[tree])
                positions.append(start + depths[tree])  # position = committed length + depth
                segments.append(Segment(self._ledger.slots_of(view.request_id), start, row.width, sees[tree]))
                tree += 1
            logit_rows.extend(range(offsets[-1], len(ids)))
        for chunk in plan.prefills:
            offsets.append(len(ids))
            start, stop = chunk.start, chunk.start + chunk.length
            spans.append((chunk.request.request_id, start, chunk.length))
            ids.extend(chunk.request.ids[start:stop])
            positions.append(torch.arange(start, stop))
            segments.append(Segment(self._ledger.slots_of(chunk.request.request_id), start, chunk.length))
            if chunk.is_last:
                logit_rows.append(len(ids) - 1)
        if len(ids) != reservation.slots:
            raise PlanMismatch("rows of the batch", reservation.slots, reservation.set_by, len(ids), "Runner.run")
        batch = ForwardBatch(
            input_ids=torch.tensor(ids),
            positions=torch.cat(positions),
            out_cache_loc=self._ledger.locate(spans),
            attention=AttentionPlan(segments, self.pool, self.model.shape.num_heads),
            logit_rows=None if len(logit_rows) == len(ids) else torch.tensor(logit_rows, dtype=torch.int64),
            capture_aux=bool(self._aux_layers),
        )
        out = self.model.forward(batch, self.pool, self._aux_layers)
        shapes = StepShapes(
            input_ids=list(batch.input_ids.shape),
            seq_lens=[len(segments)],
            extend_lens=[chunk.length for chunk in plan.prefills],
            out_cache_loc=list(batch.out_cache_loc.shape),
            hidden_states=[] if out.aux is None else list(out.aux.shape),
        )
        return RunOutput(out.logits, out.aux, batch.out_cache_loc, offsets, self.pool.take_written(), shapes)
