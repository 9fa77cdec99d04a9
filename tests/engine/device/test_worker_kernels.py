"""Whole steps with the Triton kernels in place of their references, interpreted: what each is handed fits it."""

from __future__ import annotations

import pytest
import torch

from engine import device_assembly
from engine.attention.triton_backend import TritonBackend
from engine.device.drafting import draft_trees
from engine.kernels import dispatch
from engine.kernels.tree import TreeBuffers
from engine.sampling_params import SamplingParams
from tests.engine.device.device_engines import device_engine, device_worker, kv_of
from tests.engine.tiny import CHAIN, prompts

SMALL_TREE = {"steps": 3, "topk": 2, "draft_tokens": 6}
PARAMS = [
    SamplingParams(max_tokens=9, temperature=0.0, ignore_eos=True),
    SamplingParams(max_tokens=9, temperature=1.0, seed=4, ignore_eos=True),
]


def run(shape: dict[str, int]) -> tuple[list[list[int]], list[list[list[int]]], torch.Tensor, torch.Tensor]:
    """Prefill, verifies, plain decodes, a verify again: tokens, trees, and both pools, the draft's with its nodes."""
    llm, _ = device_engine({**shape, "draft_sync": "eager"}, dtype="float32")
    worker = device_worker(llm)
    trees: list[list[list[int]]] = []

    def grow(rows: torch.Tensor, steps: int, topk: int, out: TreeBuffers, bound: int) -> None:
        assert worker.parts.draft is not None
        draft_trees(worker.parts.draft, worker.parts.state, rows, steps, topk, out, bound)
        trees.append([out.tokens.tolist(), out.parents.tolist(), out.masks.tolist()])

    worker.programs.grow = grow
    requests = [llm.core.add(f"r{i}", ids, p) for i, (ids, p) in enumerate(zip(prompts(2, 10), PARAMS, strict=True))]
    for spec in ("on", "on", "off", "off", "on"):
        llm.set_knobs(spec=spec)
        llm.core.step()
    target, draft = (torch.cat(kv, dim=2) for kv in zip(*(kv_of(llm, r, r.committed) for r in requests), strict=True))
    assert worker.parts.draft is not None
    pool = worker.parts.draft.pool
    nodes = torch.stack([pool.k, pool.v])[:, :, pool.scratch_base :]
    return [request.ids for request in requests], trees, target, torch.cat([draft, nodes], dim=2)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [CHAIN, SMALL_TREE], ids=["chain", "tree"])
def test_steps_of_kernels_are_steps_of_references(
    shape: dict[str, int], interpreted: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch._Switch, "interpreting", False)
    tokens, trees, target, draft = run(shape)
    monkeypatch.setattr(dispatch._Switch, "interpreting", True)
    monkeypatch.setattr(
        device_assembly,
        "choose_backend",
        lambda *shape: (TritonBackend(torch.device("cpu")), "the kernels, interpreted"),
    )
    found_tokens, found_trees, found_target, found_draft = run(shape)
    assert (found_tokens, found_trees) == (tokens, trees)
    torch.testing.assert_close(found_target, target, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found_draft, draft, rtol=1e-4, atol=1e-4)
