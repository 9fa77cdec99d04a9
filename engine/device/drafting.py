"""The draft stage: candidate trees grown by the EAGLE-3 head on the device (EAGLE-2's dynamic trees, arXiv 2406.16858).

The same trees as engine/spec/eagle3_proposer.py, as one program without a read-back: the head in full on the newest
committed position of each request, then ``steps - 1`` forwards of ``topk`` nodes. Keys and values of nodes go to
scratch slots of the draft's pool, a range for each row of the batch, so that they never cost a request a slot.
"""

from __future__ import annotations

import torch

from engine.attention.backend import VerifyBatch
from engine.device.parts import Draft, verifying
from engine.device.state import DeviceState
from engine.kernels.argmax import greedy
from engine.kernels.tree import TreeBuffers, build_tree, chain_tree


def draft_trees(
    draft: Draft, state: DeviceState, rows: torch.Tensor, steps: int, topk: int, out: TreeBuffers, bound: int
) -> None:
    """Trees of the requests at rows int64 [B], into ``out`` [B, W]. Their draft K and V cover every committed position.

    ``bound``: on the committed length of any of them.
    """
    if topk == 1:
        _Chain(draft, state, rows, bound).grow(steps, out)
    else:
        _Tree(draft, state, rows, bound, topk).grow(steps, out)


class _Growth:
    """The head's forwards over one batch."""

    def __init__(self, draft: Draft, state: DeviceState, rows: torch.Tensor, bound: int) -> None:
        self._draft, self._state, self._rows, self._bound = draft, state, rows, bound
        self.roots = state.tokens[rows]  # int64 [B]
        self._lens = state.lens[rows].long()  # int64 [B]
        self._scratch = draft.scratch[: rows.shape[0]]

    def extend(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The newest committed position, whose K and V are written: logits [B, draft vocab], hidden [B, hidden]."""
        draft, state = self._draft, self._state
        inputs = draft.head.read(self.roots, state.draft_g[self._rows])
        attend = verifying(draft.attention, draft.pool, self._batch(1, self._scratch[:, :0], None))
        return draft.head.forward(inputs, self._lens - 1, None, attend, draft.pool)

    def expand(
        self, depth: int, tokens: torch.Tensor, hidden: torch.Tensor, sees: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """k nodes of each request at ``depth``: logits [B * k, draft vocab], hidden [B * k, hidden].

        tokens int64 [B, k]; hidden [B * k, hidden] of their parents, **overwritten**; sees int64 [B, k]: bit t is the
        t-th node expanded so far, itself included; None for a chain, whose one node sees all.
        """
        draft, k = self._draft, tokens.shape[1]
        seen = depth * k  # nodes expanded by then, these included
        positions = (self._lens + (depth - 1)).repeat_interleave(k)  # expanded and reshaped, one request's is a view
        loc = self._scratch[:, seen - k : seen].contiguous().view(-1)  # of one node: reshape would be a strided view
        attend = verifying(draft.attention, draft.pool, self._batch(k, self._scratch[:, :seen], sees))
        inputs = draft.head.read(tokens.reshape(-1), hidden)
        return draft.head.forward(inputs, positions, loc, attend, draft.pool)

    def to_target(self, ids: torch.Tensor) -> torch.Tensor:
        """Target ids of draft ids."""
        return self._draft.head.draft_to_target[ids]

    def _batch(self, width: int, tail: torch.Tensor, mask: torch.Tensor | None) -> VerifyBatch:
        state = self._state
        return VerifyBatch(
            rows=self._rows,
            width=width,
            pages=state.pages,
            lens=state.lens,
            page_size=state.page_size,
            tail_loc=tail.contiguous(),
            tail_mask=mask,
            bound=self._bound + tail.shape[1],
        )


class _Chain(_Growth):
    """topk 1: the likeliest token after the likeliest token. Scores decide nothing, so none are made."""

    def grow(self, steps: int, out: TreeBuffers) -> None:
        logits, hidden = self.extend()
        nodes = [self.roots, self.to_target(greedy(logits))]
        for depth in range(1, steps):
            logits, hidden = self.expand(depth, nodes[-1][:, None], hidden, None)
            nodes.append(self.to_target(greedy(logits)))
        chain_tree(torch.stack(nodes, dim=1), out)


class _Tree(_Growth):
    """Keeps the best ``topk`` of the frontier's candidates at each depth; the pool holds every candidate."""

    def __init__(self, draft: Draft, state: DeviceState, rows: torch.Tensor, bound: int, topk: int) -> None:
        super().__init__(draft, state, rows, bound)
        self._batch_size, self._k = rows.shape[0], topk
        self._bits = 1 << torch.arange(64, dtype=torch.int64, device=rows.device)  # the last one is the sign's
        self._scores: list[torch.Tensor] = []  # float32 [B, candidates] each, cumulative log probability
        self._tokens: list[torch.Tensor] = []  # int64 [B, candidates]
        self._parents: list[torch.Tensor] = []  # int32 [B, candidates], place in the pool, -1 is the root

    def grow(self, steps: int, out: TreeBuffers) -> None:
        batch, k = self._batch_size, self._k
        logits, hidden = self.extend()
        scores, tokens = self._likeliest(logits)  # [B, k]
        self._keep(scores, tokens, torch.full_like(tokens, -1, dtype=torch.int32))
        frontier = torch.arange(k, device=tokens.device).expand(batch, k)  # places in the pool
        hidden = hidden.repeat_interleave(k, dim=0)  # of each frontier node's parent, [B * k, hidden]; never a view
        sees = self._bits[:k].expand(batch, k)
        for depth in range(1, steps):
            logits, grown = self.expand(depth, tokens, hidden, sees.contiguous())
            below, ids = self._likeliest(logits)  # [B * k, k]
            candidates = (below.view(batch, k, k) + scores[:, :, None]).view(batch, k * k)
            ids = ids.view(batch, k * k)
            place = k + (depth - 1) * k * k  # of the first of them in the pool
            self._keep(candidates, ids, frontier.int().repeat_interleave(k, dim=1))
            if depth + 1 == steps:
                break
            scores, best = candidates.topk(k, dim=-1)  # [B, k]
            parent = best // k  # frontier node that each survivor hangs on
            grown = grown.view(batch, k, -1)
            hidden = grown.gather(1, parent[:, :, None].expand(-1, -1, grown.shape[2])).view(batch * k, -1)
            sees = sees.gather(1, parent) | self._bits[depth * k : (depth + 1) * k]
            frontier, tokens = place + best, ids.gather(1, best)
        pool = (torch.cat(self._scores, 1), torch.cat(self._tokens, 1), torch.cat(self._parents, 1))
        build_tree(*pool, self.roots, out)

    def _likeliest(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Log probabilities and target ids of the k likeliest tokens: float32 and int64 [N, k]."""
        wide = logits.float()
        top = wide.topk(self._k, dim=-1)
        return top.values - wide.logsumexp(dim=-1, keepdim=True), self.to_target(top.indices)

    def _keep(self, scores: torch.Tensor, tokens: torch.Tensor, parents: torch.Tensor) -> None:
        self._scores.append(scores)
        self._tokens.append(tokens)
        self._parents.append(parents)
