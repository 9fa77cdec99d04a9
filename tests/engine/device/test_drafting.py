"""The trees that the device grows are the host's, node for node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from engine.device.drafting import draft_trees
from engine.host_worker import HostWorker
from engine.kernels.tree import TreeBuffers
from engine.request_view import RequestView
from engine.spec.choice import SpecChoice
from engine.spec.draft_tree import DraftTrees
from engine.spec.eagle3_proposer import Eagle3Proposer
from tests.engine.device.device_engines import device_engine, device_worker
from tests.engine.tiny import GREEDY, SHAPES, eagle_engine, prompts


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: f"{s['topk']}/{s['steps']}/{s['draft_tokens']}")
def test_the_trees_are_the_host_proposers(shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    given = prompts(3, longest=20, seed=1)
    theirs: list[DraftTrees] = []
    propose = Eagle3Proposer.propose

    def keep_theirs(self: Eagle3Proposer, requests: Sequence[RequestView], choice: SpecChoice) -> DraftTrees:
        theirs.append(propose(self, requests, choice))
        return theirs[-1]

    monkeypatch.setattr(Eagle3Proposer, "propose", keep_theirs)
    monkeypatch.setattr(HostWorker, "even_widths", True)  # as the device worker asks for
    host, _ = eagle_engine(shape)
    host.generate(given, GREEDY)

    llm, _ = device_engine(shape)
    worker = device_worker(llm)
    ours: list[TreeBuffers] = []

    def keep_ours(rows: torch.Tensor, steps: int, topk: int, out: TreeBuffers, bound: int) -> None:
        assert worker.parts.draft is not None
        draft_trees(worker.parts.draft, worker.parts.state, rows, steps, topk, out, bound)
        ours.append(TreeBuffers(out.tokens.clone(), out.parents.clone(), out.depths.clone(), out.masks.clone()))

    worker.programs.grow = keep_ours
    llm.generate(given, GREEDY)

    assert len(ours) == len(theirs) > 10
    bits = 1 << torch.arange(shape["draft_tokens"])
    for mine, other in zip(ours, theirs, strict=True):
        assert torch.equal(mine.tokens, other.tokens)
        assert torch.equal(mine.parents.long(), other.parents)
        assert torch.equal(mine.depths.long(), other.depths())
        assert torch.equal(mine.masks, (other.visibility() * bits).sum(dim=2))
