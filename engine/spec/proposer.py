"""What the engine asks of anything that drafts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from engine.request_view import RequestView
from engine.spec.choice import SpecChoice
from engine.spec.draft_tree import DraftTrees
from probes.knobs import DraftSync, Knobs


class Proposer(Protocol):
    """A source of candidate trees, with whatever state follows the committed tokens.

    The engine calls, per step: `propose` for the requests that speculate, then `observe` for every request that
    committed tokens, then `settle` once. `forget` ends a request.
    """

    @property
    def name(self) -> str:
        """The algorithm, as it stands in ``spec_info``."""

    @property
    def aux_layers(self) -> tuple[int, ...]:
        """Boundaries of the target whose hidden states `observe` wants; empty: none."""

    def check(self, knobs: Knobs) -> None:
        """Refuse knobs it cannot serve (`probes.knobs.KnobError`)."""

    def propose(self, requests: Sequence[RequestView], choice: SpecChoice) -> DraftTrees:
        """Trees of ``choice.draft_tokens`` nodes for requests whose newest token is ``ids[-1]``."""

    def observe(self, request: RequestView, aux: torch.Tensor | None) -> None:
        """Tokens were committed: aux [n, n_aux * hidden] of the newest n committed positions."""

    def settle(self, sync: DraftSync) -> None:
        """The sync stage at the end of a step."""

    def forget(self, request_id: str) -> None:
        """The request ended, or gave up drafting; unknown ids are ignored."""

    def lag(self, request_id: str) -> int:
        """Committed tokens that the draft's state does not cover yet."""

    def used_slots(self) -> int:
        """Slots of the draft's pool that hold K and V."""

    def debt_bytes(self) -> int:
        """Memory of hidden states that wait for the sync."""
