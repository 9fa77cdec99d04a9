"""State, pool, model and paged attention together equal the CPU's model: a prompt's life without a worker."""

from __future__ import annotations

import pytest
import torch

from engine.attention.backend import ExtendBatch, VerifyBatch
from engine.attention.dense import AttentionPlan, Segment
from engine.attention.torch_backend import TorchBackend
from engine.device.llama import DeviceLlama
from engine.device.state import DeviceState
from engine.models.llama import ForwardBatch, LlamaModel
from engine.models.random_checkpoint import random_target, tiny_shape
from tests.engine.device.both_models import (
    CONTEXT,
    CPU,
    PAGE_SIZE,
    SLOTS,
    TREE,
    arithmetic_of,
    assert_same,
    copied,
    flat_loc,
    half_split,
    scattered_slots,
    tree_visibility,
)

SHAPE = tiny_shape(num_layers=2)
AUX = (0, 2)


class Step:
    """Two requests in rows 2 and 0 of a state, and the same ones on the CPU."""

    def __init__(self, dtype: torch.dtype) -> None:
        tensors = random_target(7, SHAPE, dtype).tensors
        self.cpu = LlamaModel(SHAPE, tensors, arithmetic_of(dtype), CONTEXT)
        self.cpu_pool = self.cpu.make_pool(SLOTS)
        self.device = DeviceLlama(SHAPE, copied(tensors), dtype, CPU, CONTEXT)
        self.pool = self.device.make_pool(SLOTS, PAGE_SIZE)
        self.state = DeviceState(3, 4, PAGE_SIZE, 0, 0, CPU, dtype, scrap_page=self.pool.scrap_page)
        self.slots = scattered_slots()
        self.rows = torch.tensor([2, 0])
        for row, slots in zip(self.rows.tolist(), self.slots, strict=True):
            self.state.pages[row, :3] = torch.tensor(slots.pages)
        self.generator = torch.Generator().manual_seed(1)

    def ids(self, count: int) -> torch.Tensor:
        return torch.randint(SHAPE.vocab_size, (count,), generator=self.generator)

    def wanted(self, ids: torch.Tensor, segments: list[Segment]) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits and hidden states by the CPU's model."""
        depths = [torch.arange(s.width) if s.tree is None else s.tree.sum(1) - 1 for s in segments]
        positions = torch.cat([s.start + depth for s, depth in zip(segments, depths, strict=True)])
        plan = AttentionPlan(segments, self.cpu_pool, SHAPE.num_heads)
        batch = ForwardBatch(ids, positions, flat_loc(segments), plan, None, capture_aux=True)
        out = self.cpu.forward(batch, self.cpu_pool, AUX)
        assert out.aux is not None
        return out.logits, out.aux

    def prefill(self, ids: torch.Tensor, lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor | None]:
        """One chunk of each request behind what is committed, which it then is too."""
        starts = self.state.lens[self.rows]
        totals = [start + length for start, length in zip(starts.tolist(), lengths, strict=True)]
        positions = [torch.arange(total - length, total) for total, length in zip(totals, lengths, strict=True)]
        loc = [self.state.slots(row[None], at[None])[0] for row, at in zip(self.rows, positions, strict=True)]
        batch = ExtendBatch(
            rows=self.rows,
            starts=starts,
            cu_q=torch.tensor([0, lengths[0], sum(lengths)], dtype=torch.int32),
            max_q=max(lengths),
            pages=self.state.pages,
            page_size=PAGE_SIZE,
            host_pages=[slots.pages for slots in self.slots],
            host_lengths=totals,
            host_q=lengths,
        )
        self.state.lens[self.rows] = torch.tensor(totals, dtype=torch.int32)
        pool = self.pool
        return self.device.forward(
            ids,
            torch.cat(positions),
            torch.cat(loc),
            lambda layer, q: TorchBackend().extend(q, pool.keys[layer], pool.values[layer], batch),
            pool,
            aux_layers=AUX,
        )

    def verify(
        self, ids: torch.Tensor, rows: torch.Tensor, sees: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """``sees`` bool [n, n]: a tree of n nodes each; None: one token each. Nothing is committed."""
        width = 1 if sees is None else sees.shape[0]
        depths = torch.zeros(1, dtype=torch.int64) if sees is None else sees.sum(1) - 1
        masks = None if sees is None else (sees.long() << torch.arange(width)).sum(1).expand(rows.shape[0], -1)
        loc = self.state.slots(rows, self.state.following(rows, width))
        batch = VerifyBatch(
            rows=rows,
            width=width,
            pages=self.state.pages,
            lens=self.state.lens,
            page_size=PAGE_SIZE,
            tail_loc=loc,
            tail_mask=masks,
            bound=64,
        )
        pool = self.pool
        return self.device.forward(
            ids,
            (self.state.lens[rows][:, None] + depths).flatten(),
            loc.flatten(),
            lambda layer, q: TorchBackend().verify(q, pool.keys[layer], pool.values[layer], batch),
            pool,
            aux_layers=AUX,
        )


def assert_equal(got: tuple[torch.Tensor, torch.Tensor | None], wanted: tuple[torch.Tensor, torch.Tensor]) -> None:
    assert got[1] is not None
    assert_same(got[0], wanted[0])
    assert_same(got[1], wanted[1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_two_chunks_a_decode_and_a_tree_equal_the_cpus(dtype: torch.dtype) -> None:
    step = Step(dtype)
    a, b = step.slots
    ids = step.ids(9 + 17)
    assert_equal(step.prefill(ids, [9, 17]), step.wanted(ids, [Segment(a, 0, 9), Segment(b, 0, 17)]))
    ids = step.ids(12 + 2)
    assert_equal(step.prefill(ids, [12, 2]), step.wanted(ids, [Segment(a, 9, 12), Segment(b, 17, 2)]))
    ids = step.ids(2)
    assert_equal(step.verify(ids, step.rows, None), step.wanted(ids, [Segment(a, 21, 1), Segment(b, 19, 1)]))
    step.state.lens[step.rows] += 1
    ids, sees = step.ids(2 * len(TREE)), tree_visibility(TREE)
    wanted = step.wanted(ids, [Segment(a, 22, len(TREE), sees), Segment(b, 20, len(TREE), sees)])
    assert_equal(step.verify(ids, step.rows, sees), wanted)


def test_rows_that_pad_a_batch_change_nothing_of_the_others() -> None:
    step = Step(torch.float64)
    ids = step.ids(9 + 17)
    step.prefill(ids, [9, 17])
    step.wanted(ids, [Segment(step.slots[0], 0, 9), Segment(step.slots[1], 0, 17)])
    ids = step.ids(4)
    pad = step.state.pad_row
    logits, _ = step.verify(ids, torch.tensor([2, 0, pad, pad]), None)
    wanted, _ = step.wanted(ids[:2], [Segment(step.slots[0], 9, 1), Segment(step.slots[1], 17, 1)])
    assert_same(logits[:2], wanted)
    assert logits.isfinite().all()
    keys = step.cpu_pool.data[:, : SHAPE.num_kv_heads].transpose(1, 2)
    assert_same(step.pool.k[:, :SLOTS], half_split(keys))
