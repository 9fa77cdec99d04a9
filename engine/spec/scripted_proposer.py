"""A proposer that knows the answers: to test acceptance, and to measure what perfect or useless drafts would give.

A random or badly matched head accepts almost nothing, so the code behind long accepted runs would never run in a test.
The *oracle* proposes what the target will choose; the *hostile* draft never does; a *j-draft* is right j times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from engine.request_view import RequestView
from engine.spec.choice import SpecChoice
from engine.spec.draft_tree import DraftTrees
from engine.spec.proposer import Proposer
from probes.knobs import DraftSync, Knobs

ORACLE = 1 << 30
"""``right`` of a draft that is always right."""


class ScriptedProposer:
    """Trees around a known continuation: at each depth wrong siblings first, then the right child.

    The right path therefore never lies at the front of the tree, and its KV has to be gathered.
    """

    def __init__(
        self,
        answers: Mapping[tuple[int, ...], Sequence[int]],
        vocab_size: int,
        *,
        right: int = ORACLE,
        always: int | None = None,
        inner: Proposer | None = None,
    ) -> None:
        """Script the drafts.

        Args:
            answers: prompt -> the tokens that follow it.
            vocab_size: wrong drafts are other ids below it.
            right: depth to which drafts are right; 0 is hostile.
            always: propose this token at every node instead (one child a node).
            inner: a real proposer whose state is kept in step beside; it never drafts.
        """
        self._answers = answers
        self._vocab_size = vocab_size
        self._right = right
        self._always = always
        self._inner = inner

    name = "scripted"

    @property
    def aux_layers(self) -> tuple[int, ...]:
        return self._inner.aux_layers if self._inner is not None else ()

    def check(self, knobs: Knobs) -> None:
        pass

    def propose(self, requests: Sequence[RequestView], choice: SpecChoice) -> DraftTrees:
        trees = [self._tree(request, choice) for request in requests]
        tokens, parents = zip(*trees, strict=True)
        return DraftTrees(torch.tensor(tokens), torch.tensor(parents))

    def _tree(self, request: RequestView, choice: SpecChoice) -> tuple[list[int], list[int]]:
        width = choice.draft_tokens
        depth = min(choice.steps, width - 1)
        answer = self._answers.get(tuple(request.ids[: request.prompt_len]), ())
        known = answer[request.output_len : request.output_len + depth]
        tokens, parents, at = [request.ids[-1]], [-1], 0
        spare = width - 1 - depth  # nodes for wrong siblings
        for level in range(depth):
            siblings = spare // (depth - level)
            spare -= siblings
            base = known[level] if level < len(known) else 0
            wrong = [(base + 1 + i) % self._vocab_size for i in range(siblings + 1)]
            is_right = level < self._right and level < len(known)
            path = base if is_right else wrong[-1]
            if self._always is not None:
                path = self._always
                wrong = [token for token in [*wrong, self._vocab_size - 1] if token != path]
            tokens += [*wrong[:siblings], path]
            parents += [at] * (siblings + 1)
            at = len(tokens) - 1
        return tokens, parents

    def observe(self, request: RequestView, aux: torch.Tensor | None) -> None:
        if self._inner is not None:
            self._inner.observe(request, aux)

    def settle(self, sync: DraftSync) -> None:
        if self._inner is not None:
            self._inner.settle(sync)

    def forget(self, request_id: str) -> None:
        if self._inner is not None:
            self._inner.forget(request_id)

    def lag(self, request_id: str) -> int:
        return self._inner.lag(request_id) if self._inner is not None else 0

    def used_slots(self) -> int:
        return self._inner.used_slots() if self._inner is not None else 0

    def debt_bytes(self) -> int:
        return self._inner.debt_bytes() if self._inner is not None else 0
