"""The device's draft head equals the CPU's."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from engine.attention.dense import AttentionPlan, Segment
from engine.device.eagle3 import DeviceHead
from engine.device.layer_parts import Attend
from engine.kernels import dispatch
from engine.models.eagle3 import Eagle3Head, NodeCache
from engine.models.random_checkpoint import random_draft, random_target
from engine.models.shapes import Eagle3Shape
from tests.engine.device.both_models import (
    CONTEXT,
    CPU,
    PAGE_SIZE,
    SLOTS,
    arithmetic_of,
    assert_same,
    assert_same_kv,
    attend_slots,
    copied,
    dense_attend,
    scattered_slots,
)

LENGTHS = (10, 19)
"""Committed tokens of the two requests."""
NODES = 3
"""Nodes expanded at each depth."""
SCRATCH = 2 * NODES
"""Scratch slots of a request: two depths."""


class Pair:
    """Both heads with a pool each, and two requests with hidden states of their committed tokens."""

    def __init__(self, dtype: torch.dtype, *, norm_before_residual: bool = False, own_embedding: bool = False) -> None:
        target = random_target(3, dtype=dtype)
        draft = random_draft(4, target)
        self.shape: Eagle3Shape = replace(draft.shape, norm_before_residual=norm_before_residual)
        self.generator = torch.Generator().manual_seed(5)
        embedding = target.tensors["embed_tokens.weight"]
        tensors = dict(draft.tensors)
        if own_embedding:
            tensors["embed_tokens.weight"] = self.random(*embedding.shape, dtype=dtype)
        mapping = draft.draft_to_target
        self.cpu = Eagle3Head(self.shape, tensors, mapping, embedding, arithmetic_of(dtype), CONTEXT)
        self.device = DeviceHead(self.shape, copied(tensors), mapping, embedding, dtype, CPU, CONTEXT)
        self.cpu_pool = self.cpu.make_pool(SLOTS)
        self.pool = self.device.make_pool(SLOTS, PAGE_SIZE, scratch=len(LENGTHS) * SCRATCH)
        self.requests = scattered_slots()
        self.aux = self.random(sum(LENGTHS), 3 * self.shape.target_hidden_size, dtype=dtype)
        self.next_ids = self.ids(sum(LENGTHS))
        self.positions = torch.cat([torch.arange(length) for length in LENGTHS])
        slots = [request.slots(0, length) for request, length in zip(self.requests, LENGTHS, strict=True)]
        self.loc = torch.cat(slots)

    def random(self, *dims: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.randn(dims, generator=self.generator, dtype=torch.float64).to(dtype)

    def ids(self, count: int) -> torch.Tensor:
        return torch.randint(self.shape.vocab_size, (count,), generator=self.generator)

    def write_both(self) -> None:
        """K and V of all committed tokens."""
        inputs = self.cpu.read(self.next_ids, self.cpu.fuse(self.aux))
        self.cpu.write_kv(inputs, self.positions, self.loc, self.cpu_pool)
        self.write_device()

    def write_device(self) -> None:
        inputs = self.device.read(self.next_ids, self.device.fuse(self.aux))
        self.device.write_kv(inputs, self.positions, self.loc, self.pool)

    def newest(self) -> torch.Tensor:
        """Rows of the last committed position of each request."""
        return torch.tensor(LENGTHS).cumsum(0) - 1

    def newest_attend(self) -> Attend:
        return dense_attend(self.newest_segments(), self.pool)

    def newest_segments(self) -> list[Segment]:
        return [Segment(slots, length - 1, 1) for slots, length in zip(self.requests, LENGTHS, strict=True)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm_before_residual", [False, True])
def test_the_newest_position_in_full_equals_the_cpus(dtype: torch.dtype, norm_before_residual: bool) -> None:
    both = Pair(dtype, norm_before_residual=norm_before_residual)
    both.write_both()
    assert_same_kv(both.pool, both.cpu_pool.data)
    rows = both.newest()
    inputs = both.cpu.read(both.next_ids[rows], both.cpu.fuse(both.aux[rows]))
    plan = AttentionPlan(both.newest_segments(), both.cpu_pool, both.shape.num_heads)
    wanted = both.cpu.forward(inputs, both.positions[rows], plan, both.cpu_pool)

    mine = both.device.read(both.next_ids[rows], both.device.fuse(both.aux[rows]))
    logits, hidden = both.device.forward(mine, both.positions[rows], None, both.newest_attend(), both.pool)
    assert_same(torch.log_softmax(logits.float(), -1), wanted.logprobs)
    assert_same(hidden, wanted.hidden)
    assert_same_kv(both.pool, both.cpu_pool.data)  # nothing was written again elsewhere


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tree_nodes_in_scratch_slots_equal_the_cpus_beside_its_pool(dtype: torch.dtype) -> None:
    both = Pair(dtype)
    both.write_both()
    prefixes = [
        both.cpu_pool.read(0, request.slots(0, length)) for request, length in zip(both.requests, LENGTHS, strict=True)
    ]
    eye = torch.eye(NODES, dtype=torch.bool)
    parents = eye[torch.tensor([2, 0, 0])]  # of the second depth's nodes, among the first's
    cache = NodeCache()
    for depth, visible in enumerate([eye, torch.cat([parents, eye], dim=1)]):
        ids = both.ids(2 * NODES)
        g = both.random(2 * NODES, both.shape.hidden_size, dtype=dtype)
        positions = (torch.tensor(LENGTHS) + depth).repeat_interleave(NODES)
        seen = visible.expand(2, -1, -1)
        wanted = both.cpu.forward_nodes(both.cpu.read(ids, g), positions, prefixes, cache, seen)

        scratch = both.pool.scratch_base + torch.arange(2)[:, None] * SCRATCH
        loc = (scratch + depth * NODES + torch.arange(NODES)).flatten()
        tails = scratch + torch.arange((depth + 1) * NODES)

        def attend(
            layer: int, q: torch.Tensor, tails: torch.Tensor = tails, own: torch.Tensor = visible
        ) -> torch.Tensor:
            keys = [
                torch.cat([request.slots(0, length), tail])
                for request, length, tail in zip(both.requests, LENGTHS, tails, strict=True)
            ]
            outs = [
                attend_slots(rows, both.pool, layer, at, own) for rows, at in zip(q.split(NODES), keys, strict=True)
            ]
            return torch.cat(outs)

        logits, hidden = both.device.forward(both.device.read(ids, g), positions, loc, attend, both.pool)
        assert_same(torch.log_softmax(logits.float(), -1), wanted.logprobs)
        assert_same(hidden, wanted.hidden)
    assert_same_kv(both.pool, both.cpu_pool.data)


def test_a_head_with_an_embedding_of_its_own_reads_that() -> None:
    both = Pair(torch.float64, own_embedding=True)
    both.write_both()
    assert_same_kv(both.pool, both.cpu_pool.data)


def test_the_kernels_in_the_place_of_their_references_give_the_same(interpreter: None) -> None:
    """Also where there are no queries to turn, and no keys to write."""
    outputs = []
    for interpret in (nullcontext(), dispatch.interpret()):
        both = Pair(torch.float32)
        rows = both.newest()
        with interpret:
            both.write_device()
            inputs = both.device.read(both.next_ids[rows], both.device.fuse(both.aux[rows]))
            given = (both.positions[rows], None, both.newest_attend(), both.pool)
            outputs.append((*both.device.forward(inputs, *given), both.pool.k, both.pool.v))
    for kernel, reference in zip(*outputs, strict=True):
        assert_same(kernel, reference)


def test_writing_in_the_forward_is_writing_before_it() -> None:
    before, within = Pair(torch.float64), Pair(torch.float64)
    before.write_device()
    within.write_device()
    rows = within.newest()
    loc, positions = within.loc[rows], within.positions[rows]
    within.pool.k[:, loc] = 7.0
    within.pool.v[:, loc] = 7.0
    outputs = []
    for pair, where in ((before, None), (within, loc)):
        inputs = pair.device.read(pair.next_ids[rows], pair.device.fuse(pair.aux[rows]))
        outputs.append(pair.device.forward(inputs, positions, where, pair.newest_attend(), pair.pool))
    assert_same(outputs[1][0], outputs[0][0])
    assert_same(outputs[1][1], outputs[0][1])
    assert_same(within.pool.k, before.pool.k)
    assert_same(within.pool.v, before.pool.v)


def test_the_hidden_state_takes_the_residuals_place() -> None:
    both = Pair(torch.float64)
    both.write_device()
    rows = both.newest()
    inputs = both.device.read(both.next_ids[rows], both.device.fuse(both.aux[rows]))
    _, hidden = both.device.forward(inputs, both.positions[rows], None, both.newest_attend(), both.pool)
    assert hidden.data_ptr() == inputs.residual.data_ptr()


def test_the_checkpoint_is_emptied_while_its_weights_are_taken() -> None:
    draft = random_draft(4, random_target(3, dtype=torch.float32))
    embedding = torch.zeros(draft.shape.vocab_size, draft.shape.hidden_size)
    count = sum(tensor.numel() for tensor in draft.tensors.values())
    head = DeviceHead(draft.shape, draft.tensors, draft.draft_to_target, embedding, torch.float32, CPU, CONTEXT)
    assert head.parameters == count
    assert not draft.tensors
