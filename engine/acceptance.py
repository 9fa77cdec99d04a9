"""The accept stage: draw at the nodes, keep the accepted path's KV, free the rest."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.kv.ledger import Reservation
from engine.kv.pool import KvPool
from engine.request import Request
from engine.runner import RunOutput
from engine.sampler import draw
from engine.spec.draft_tree import DraftTrees
from engine.spec.verify import Walk, walk_trees
from engine.step_plan import StepPlan


@dataclass(frozen=True)
class Accepted:
    """What one request of the plan got from the forward."""

    request: Request
    width: int  # tokens verified; 0 for a prefill chunk
    walk: Walk
    row: int  # flat row of its first token; node n of a tree is row + n
    logit_row: int  # row of `RunOutput.logits` that its first draw came from


def accept(
    plan: StepPlan, reservation: Reservation, trees: DraftTrees | None, ran: RunOutput, pool: KvPool
) -> list[Accepted]:
    """One entry a request of the plan, in its order. The KV of accepted paths is moved to the front of their slots."""
    walks = _walk_decodes(plan, trees, ran)
    _gather_paths(walks, reservation, ran, pool)
    accepted = [
        Accepted(row.request, row.width, walk, ran.offsets[i], ran.offsets[i])
        for i, (row, walk) in enumerate(zip(plan.decodes, walks, strict=True))
    ]
    logit_row = sum(row.width for row in plan.decodes)
    for index, chunk in enumerate(plan.prefills, start=len(plan.decodes)):
        request = chunk.request
        tokens: list[int] = []
        if chunk.is_last:
            logits = ran.logits[logit_row : logit_row + 1]
            tokens = draw(logits, [request.sampling], [request.seed], [len(request.ids)]).tolist()
        walk = Walk(list(range(chunk.length)), tokens)
        accepted.append(Accepted(request, 0, walk, ran.offsets[index], logit_row))
        logit_row += chunk.is_last
    return accepted


def _walk_decodes(plan: StepPlan, trees: DraftTrees | None, ran: RunOutput) -> list[Walk]:
    """What each decode request accepted; a plain row is a tree of its root only."""
    if not plan.decodes:
        return []
    requests = [row.request for row in plan.decodes]
    width = max(row.width for row in plan.decodes)
    tokens = torch.full((len(requests), width), -1)
    parents = torch.zeros(len(requests), width, dtype=torch.int64)
    parents[:, 0] = -1
    if trees is not None:
        drafted = torch.tensor([row.width > 1 for row in plan.decodes])
        tokens[drafted], parents[drafted] = trees.tokens, trees.parents
    offsets = torch.tensor(ran.offsets[: len(requests)])

    def draw_at(nodes: torch.Tensor, alive: list[int], depth: int) -> torch.Tensor:
        who = [requests[i] for i in alive]
        positions = [len(request.ids) + depth for request in who]
        # The decodes' rows come first, so those of a plain step are a view; a copy of 48 rows is 10 MB.
        logits = ran.logits[: len(requests)] if width == 1 else ran.logits[offsets[alive] + nodes]
        return draw(logits, [r.sampling for r in who], [r.seed for r in who], positions)

    return walk_trees(DraftTrees(tokens, parents), draw_at)


def _gather_paths(walks: list[Walk], reservation: Reservation, ran: RunOutput, pool: KvPool) -> None:
    """Move the KV of accepted paths to the front of their reservations, for all requests at once."""
    sources, targets = [], []
    for walk, offset in zip(walks, ran.offsets, strict=False):
        for place, node in enumerate(walk.nodes):
            if node != place:
                sources.append(offset + node)
                targets.append(offset + place)
    if sources:
        loc = reservation.out_cache_loc
        pool.move(loc[torch.tensor(sources)], loc[torch.tensor(targets)])
