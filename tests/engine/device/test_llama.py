"""The device's target equals the CPU's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from engine.attention.dense import AttentionPlan, Segment
from engine.device.llama import DeviceLlama
from engine.device.pool import DevicePool
from engine.kernels import dispatch
from engine.kv.pool import KvPool
from engine.models.llama import ForwardBatch, LlamaModel
from engine.models.random_checkpoint import random_target, tiny_shape
from engine.models.shapes import LlamaShape
from tests.engine.device.both_models import (
    CONTEXT,
    CPU,
    PAGE_SIZE,
    SLOTS,
    TREE,
    arithmetic_of,
    assert_same,
    assert_same_kv,
    copied,
    dense_attend,
    flat_loc,
    scattered_slots,
    tree_depths,
    tree_visibility,
)
from tests.engine.device.no_read_back import no_read_back

PLAIN = tiny_shape(num_layers=3)
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
SHAPES = {
    "plain": PLAIN,
    "tied, groups of three, llama3": replace(
        PLAIN, tie_embeddings=True, num_heads=9, num_kv_heads=3, rope_scaling=LLAMA3
    ),
}


class Pair:
    """Both models with a pool each."""

    def __init__(self, shape: LlamaShape, dtype: torch.dtype) -> None:
        tensors = random_target(7, shape, dtype).tensors
        self.shape = shape
        self.cpu = LlamaModel(shape, tensors, arithmetic_of(dtype), CONTEXT)
        self.device = DeviceLlama(shape, copied(tensors), dtype, CPU, CONTEXT)
        self.cpu_pool: KvPool = self.cpu.make_pool(SLOTS)
        self.pool: DevicePool = self.device.make_pool(SLOTS, PAGE_SIZE)
        self._generator = torch.Generator().manual_seed(1)

    def batch(self, segments: list[Segment]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Random ids, and positions and slots of the segments."""
        offsets = [torch.arange(s.width) if s.tree is None else s.tree.sum(1) - 1 for s in segments]
        positions = torch.cat([s.start + offset for s, offset in zip(segments, offsets, strict=True)])
        ids = torch.randint(self.shape.vocab_size, positions.shape, generator=self._generator)
        return ids, positions, flat_loc(segments)

    def check(self, segments: list[Segment], aux_layers: tuple[int, ...] = (1, 2)) -> None:
        """One step in both, compared in all that it gives and writes."""
        ids, positions, loc = self.batch(segments)
        plan = AttentionPlan(segments, self.cpu_pool, self.shape.num_heads)
        wanted = self.cpu.forward(
            ForwardBatch(ids, positions, loc, plan, None, capture_aux=True), self.cpu_pool, aux_layers
        )
        attend = dense_attend(segments, self.pool)
        logits, aux = self.device.forward(ids, positions, loc, attend, self.pool, aux_layers=aux_layers)
        assert wanted.aux is not None
        assert aux is not None
        assert_same(logits, wanted.logits)
        assert_same(aux, wanted.aux)
        assert_same_kv(self.pool, self.cpu_pool.data)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_chunked_prefill_decode_and_tree_verify_equal_the_cpus(shape: LlamaShape, dtype: torch.dtype) -> None:
    both = Pair(shape, dtype)
    a, b = scattered_slots()
    both.check([Segment(a, 0, 9), Segment(b, 0, 17)])
    both.check([Segment(b, 17, 1), Segment(a, 9, 12)])  # a decode beside a chunk
    both.check([Segment(a, 21, 1), Segment(b, 18, 1)])
    sees = tree_visibility(TREE)
    both.check([Segment(a, 22, 6, sees), Segment(b, 19, 6, sees)])


def test_the_streams_below_the_first_and_above_the_last_layer_can_be_kept_too() -> None:
    both = Pair(PLAIN, torch.float64)
    both.check([Segment(scattered_slots()[0], 0, 5)], aux_layers=(3, 0, 1))


def test_the_tree_positions_are_those_of_depths() -> None:
    assert tree_depths(TREE).tolist() == [0, 1, 1, 2, 2, 2]


def test_the_kernels_in_the_place_of_their_references_give_the_same(interpreter: None) -> None:
    both = Pair(SHAPES["tied, groups of three, llama3"], torch.float32)
    with dispatch.interpret():
        both.check([Segment(scattered_slots()[0], 0, 4), Segment(scattered_slots()[1], 0, 1)])


class _Forward:
    """A prefill of 5 tokens on the device alone, as often as wanted."""

    def __init__(self) -> None:
        self.both = Pair(PLAIN, torch.float32)
        segments = [Segment(scattered_slots()[0], 0, 5)]
        self.inputs = self.both.batch(segments)
        self.attend = dense_attend(segments, self.both.pool)

    def __call__(self, **options: Any) -> tuple[torch.Tensor, torch.Tensor | None]:
        return self.both.device.forward(*self.inputs, self.attend, self.both.pool, **options)


def test_logits_of_some_rows_are_those_rows_of_all() -> None:
    forward = _Forward()
    everything, aux = forward()
    assert aux is None
    some, _ = forward(logit_rows=torch.tensor([4, 1]))
    assert_same(some, everything[[4, 1]])
    none, _ = forward(logit_rows=torch.empty(0, dtype=torch.int64))
    assert none.shape == (0, PLAIN.vocab_size)


def test_outputs_go_where_they_are_asked_for() -> None:
    forward = _Forward()
    wanted, wanted_aux = forward(aux_layers=(1, 3))
    logits_out, aux_out = torch.full_like(wanted, 7.0), torch.full((5, 2 * PLAIN.hidden_size), 7.0)
    logits, aux = forward(aux_layers=(1, 3), logits_out=logits_out, aux_out=aux_out)
    assert logits.data_ptr() == logits_out.data_ptr()
    assert aux is not None
    assert aux.data_ptr() == aux_out.data_ptr()
    assert wanted_aux is not None
    assert_same(logits_out, wanted)
    assert_same(aux_out, wanted_aux)


def test_a_forward_never_reads_a_value_on_the_host() -> None:
    """What a CUDA graph cannot hold."""
    forward = _Forward()
    forward.attend = lambda layer, q: q.flatten(1)
    with no_read_back():
        forward(aux_layers=(1, 2), logit_rows=torch.tensor([4]))


def test_the_checkpoint_is_emptied_while_its_weights_are_taken() -> None:
    """An 8B model would otherwise be in memory twice."""
    tensors = random_target(7, PLAIN, torch.float32).tensors
    count = sum(tensor.numel() for tensor in tensors.values())
    assert DeviceLlama(PLAIN, tensors, torch.bfloat16, CPU, CONTEXT).parameters == count
    assert not tensors
