"""Tree drafting with an EAGLE-3 head (arXiv 2503.01840; dynamic trees of EAGLE-2, arXiv 2406.16858)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from engine.attention.dense import AttentionPlan, Segment
from engine.kv.ledger import KvLedger
from engine.models.eagle3 import Eagle3Head, HeadOutput, NodeCache
from engine.request_view import RequestView
from engine.spec.choice import SpecChoice
from engine.spec.draft_sync import DraftKv, DraftState
from engine.spec.draft_tree import DraftTrees, select_best
from probes.knobs import DraftSync, KnobError, Knobs


class Eagle3Proposer:
    """Drafts candidate trees and keeps the draft's KV in step with the target's."""

    name = "eagle3"

    def __init__(self, head: Eagle3Head, ledger: KvLedger) -> None:
        self.head = head
        self.kv = DraftKv(head, ledger)
        self._ledger = ledger

    @property
    def aux_layers(self) -> tuple[int, ...]:
        return self.head.shape.aux_layers

    def check(self, knobs: Knobs) -> None:
        if knobs.topk > self.head.shape.draft_vocab_size:
            raise KnobError(
                f"topk={knobs.topk} is more than the draft's vocabulary, {self.head.shape.draft_vocab_size}; lower topk"
            )

    def observe(self, request: RequestView, aux: torch.Tensor | None) -> None:
        if aux is None:
            raise RuntimeError("the EAGLE-3 head needs the target's hidden states of every committed token")
        self.kv.observe(request, aux)

    def settle(self, sync: DraftSync) -> None:
        if sync == "eager":
            self.kv.catch_up(self.kv.states.values())
        else:
            self.kv.settle_lazily()

    def forget(self, request_id: str) -> None:
        self.kv.states.pop(request_id, None)

    def lag(self, request_id: str) -> int:
        state = self.kv.states.get(request_id)
        return state.lag if state is not None else 0

    def used_slots(self) -> int:
        return sum(state.written for state in self.kv.states.values())

    def debt_bytes(self) -> int:
        row = len(self.aux_layers) * self.head.shape.target_hidden_size * self.head.arithmetic.activations.itemsize
        return row * sum(state.lag for state in self.kv.states.values())

    @torch.inference_mode()
    def propose(self, requests: Sequence[RequestView], choice: SpecChoice) -> DraftTrees:
        """One extend on the newest committed position, then ``steps - 1`` forwards of ``topk`` nodes each."""
        states = [self.kv.states[request.request_id] for request in requests]
        self.kv.catch_up(states)
        first = self._extend(states)
        roots = torch.tensor([request.ids[-1] for request in requests])
        return self._grow(states, first, roots, choice)

    def _extend(self, states: list[DraftState]) -> HeadOutput:
        """The head in full on the last committed position of each request: the root's candidates."""
        newest = [state.newest for state in states if state.newest is not None]
        inputs = self.head.read(torch.tensor([state.request.ids[state.written] for state in states]), torch.cat(newest))
        positions = torch.tensor([state.written - 1 for state in states])
        segments = [Segment(self._ledger.slots_of(state.request.request_id), state.written - 1, 1) for state in states]
        plan = AttentionPlan(segments, self.kv.pool, self.head.shape.num_heads)
        return self.head.forward(inputs, positions, plan, self.kv.pool)

    def _grow(self, states: list[DraftState], first: HeadOutput, roots: torch.Tensor, choice: SpecChoice) -> DraftTrees:
        """Keep the best ``topk`` of the frontier's candidates at each depth; the pool holds every candidate."""
        batch, k = len(states), choice.topk
        top = first.logprobs.topk(k, dim=-1)
        scores, tokens = [top.values], [self.head.draft_to_target[top.indices]]  # [B, candidates] each
        parents = [torch.full((batch, k), -1)]
        frontier = torch.arange(k).expand(batch, k)  # pool indices of the nodes to expand
        frontier_scores, frontier_tokens = top.values, tokens[0]
        hidden = first.hidden[:, None].expand(batch, k, -1)  # g of each frontier node, [B, k, hidden]
        visible = torch.eye(k, dtype=torch.bool).expand(batch, k, k)  # frontier x expanded nodes
        pool_size = k
        cache, prefixes = NodeCache(), self._prefixes(states) if choice.steps > 1 else []
        bases = torch.tensor([state.written for state in states])
        for depth in range(1, choice.steps):
            inputs = self.head.read(frontier_tokens.reshape(-1), hidden.reshape(batch * k, -1))
            positions = (bases + depth - 1).repeat_interleave(k)
            out = self.head.forward_nodes(inputs, positions, prefixes, cache, visible)
            top = out.logprobs.topk(k, dim=-1)  # [B * k, k]
            cand_scores = (top.values.view(batch, k, k) + frontier_scores[:, :, None]).view(batch, k * k)
            cand_tokens = self.head.draft_to_target[top.indices].view(batch, k * k)
            scores.append(cand_scores)
            tokens.append(cand_tokens)
            parents.append(frontier.repeat_interleave(k, dim=1))
            if depth + 1 == choice.steps:
                break
            best = cand_scores.topk(k, dim=-1)
            parent_row = best.indices // k  # which frontier node each survivor hangs on, [B, k]
            hidden = out.hidden.view(batch, k, -1).gather(1, parent_row[:, :, None].expand(-1, -1, out.hidden.shape[1]))
            seen = visible.gather(1, parent_row[:, :, None].expand(-1, -1, visible.shape[2]))
            visible = torch.cat([seen, torch.eye(k, dtype=torch.bool).expand(batch, k, k)], dim=2)
            frontier = pool_size + best.indices
            frontier_scores, frontier_tokens = best.values, cand_tokens.gather(1, best.indices)
            pool_size += k * k
        return select_best(
            torch.cat(scores, 1), torch.cat(tokens, 1), torch.cat(parents, 1), roots, choice.draft_tokens
        )

    def _prefixes(self, states: list[DraftState]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        prefixes = []
        for state in states:
            slots = self._ledger.slots_of(state.request.request_id)
            base = slots.base
            if base is None:
                prefixes.append(self.kv.pool.read(0, slots.slots(0, state.written)))
            else:
                rows = self.kv.pool.data[0][:, base : base + state.written]
                prefixes.append((rows[: self.kv.pool.kv_heads], rows[self.kv.pool.kv_heads :]))
        return prefixes
