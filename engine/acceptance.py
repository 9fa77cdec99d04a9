"""The accept stage: draw at the nodes, keep the accepted path's KV, free the rest."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from engine.accepted import Accepted
from engine.kv.pool import KvPool
from engine.request_view import RequestView
from engine.runner import RunOutput
from engine.sampler import draw
from engine.spec.draft_tree import DraftTrees
from engine.spec.simulated_acceptance import forced_lengths
from engine.spec.verify import Walk, walk_trees
from engine.step_plan import StepPlan


def accept(
    plan: StepPlan,
    trees: DraftTrees | None,
    ran: RunOutput,
    pool: KvPool,
    views: Mapping[str, RequestView],
    simulate_accept: float | None = None,
) -> list[Accepted]:
    """One entry a request of the plan, in its order. The KV of accepted paths is moved to the front of their slots.

    ``simulate_accept``: keep so many nodes of a tree, on average, whatever was drawn.
    """
    walks = _walk_decodes(plan, trees, ran, views, simulate_accept)
    _gather_paths(walks, ran, pool)
    accepted = [Accepted(row.request, row.width, walk) for row, walk in zip(plan.decodes, walks, strict=True)]
    logit_row = sum(row.width for row in plan.decodes)
    for chunk in plan.prefills:
        view = views[chunk.request.request_id]
        tokens: list[int] = []
        if chunk.is_last:
            logits = ran.logits[logit_row : logit_row + 1]
            tokens = draw(logits, [view.sampling], [view.seed], [len(view.ids)]).tolist()
        accepted.append(Accepted(chunk.request, 0, Walk(list(range(chunk.length)), tokens)))
        logit_row += chunk.is_last
    return accepted


def _walk_decodes(
    plan: StepPlan,
    trees: DraftTrees | None,
    ran: RunOutput,
    views: Mapping[str, RequestView],
    simulate_accept: float | None,
) -> list[Walk]:
    """What each decode request accepted; a plain row is a tree of its root only."""
    if not plan.decodes:
        return []
    requests = [views[row.request.request_id] for row in plan.decodes]
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

    forced = None
    if simulate_accept is not None:
        kept = forced_lengths(simulate_accept, [r.seed for r in requests], [len(r.ids) - 1 for r in requests])
        # A plain row has nothing but its root: what pads its tree would count as children.
        forced = [min(most, row.width) for most, row in zip(kept, plan.decodes, strict=True)]
    return walk_trees(DraftTrees(tokens, parents), draw_at, forced)


def _gather_paths(walks: list[Walk], ran: RunOutput, pool: KvPool) -> None:
    """Move the KV of accepted paths to the front of their slots, for all requests at once."""
    sources, targets = [], []
    for walk, offset in zip(walks, ran.offsets, strict=False):
        for place, node in enumerate(walk.nodes):
            if node != place:
                sources.append(offset + node)
                targets.append(offset + place)
    if sources:
        loc = ran.out_cache_loc
        pool.move(loc[torch.tensor(sources)], loc[torch.tensor(targets)])
