"""Graphs by key: what is captured when, what a miss does, and how batches are padded. With a stand-in for CUDA."""

from __future__ import annotations

from itertools import pairwise

import pytest

from engine.device.graphs import GraphKey, GraphPool, Program, Replay, ladder
from engine.device.programs import TreeShape, all_keys, plain_keys


class Programs:
    """Notes who ran, and with which bound."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []
        self.planned: list[str] = []

    def __call__(self, key: GraphKey) -> Program:
        return lambda bound: self.ran.append((str(key), bound))

    def before_capture(self, key: GraphKey, bound: int) -> None:
        self.planned.append(str(key))


class Recorder:
    def __init__(self, refuses: str = "") -> None:
        self.memory = 0
        self.replayed: list[str] = []
        self.recorded = 0
        self._refuses = refuses

    def record(self, program: Program, bound: int) -> Replay:
        program(bound)
        if self._refuses:
            raise RuntimeError(self._refuses)
        self.memory += 100
        self.recorded += 1
        number = self.recorded
        return lambda: self.replayed.append(f"graph {number}")


DECODE = GraphKey("decode", 4, (1,))


def test_a_batch_is_padded_to_the_next_size_that_is_captured() -> None:
    pool = GraphPool(Programs(), Recorder(), (8, 2, 4), 100)
    assert [pool.padded(n) for n in (1, 2, 3, 4, 5, 8)] == [2, 2, 4, 4, 8, 8]
    assert pool.padded(9) == 9  # no graph of that size: its own


def test_without_graphs_a_batch_is_as_large_as_it_is() -> None:
    programs = Programs()
    pool = GraphPool(programs, None, (8,), 100)
    assert pool.padded(3) == 3
    assert not pool.run(DECODE, 17)
    assert programs.ran == [("decode/4x1", 17)]
    assert (pool.has_missed, pool.memory) == (False, 0)


def test_a_miss_runs_with_the_batchs_own_bound_and_is_captured_after_it_for_the_longest() -> None:
    programs, recorder = Programs(), Recorder()
    pool = GraphPool(programs, recorder, (4,), 100)
    assert not pool.run(DECODE, 17)
    assert programs.ran == [("decode/4x1", 17)]
    assert pool.has_missed
    pool.catch_up()
    assert programs.ran[1:] == [("decode/4x1", 100)]
    assert programs.planned == ["decode/4x1"]
    assert not pool.has_missed
    assert pool.run(DECODE, 18)
    assert recorder.replayed == ["graph 1"]
    assert len(programs.ran) == 2
    assert (pool.memory, pool.ready) == (100, (DECODE,))


def test_a_batch_size_that_nobody_asked_for_is_never_captured() -> None:
    pool = GraphPool(Programs(), Recorder(), (2, 4), 100)
    assert not pool.run(GraphKey("decode", 5, (1,)), 10)
    assert not pool.has_missed


def test_what_cannot_be_captured_while_serving_goes_on_being_called(caplog: pytest.LogCaptureFixture) -> None:
    programs = Programs()
    pool = GraphPool(programs, Recorder("operation not permitted when stream is capturing"), (4,), 100)
    pool.run(DECODE, 10)
    pool.catch_up()
    assert "no CUDA graph of decode/4x1" in caplog.text
    assert not pool.run(DECODE, 11)
    assert programs.ran[-1] == ("decode/4x1", 11)
    assert not pool.has_missed


def test_all_are_captured_largest_first_and_progress_names_the_last() -> None:
    programs, recorder = Programs(), Recorder()
    said: list[str] = []
    pool = GraphPool(programs, recorder, (1, 2), 100)
    pool.capture_all(all_keys(pool.batches, TreeShape(2, 4, 16)), said.append)
    names = [name for name, _ in programs.ran]
    assert sorted(names) == sorted(
        f"{part}/{batch}x{width}"
        for batch in (1, 2)
        for part, width in [("decode", 1), ("settle", 1), ("draft", 16), ("verify", 16), ("settle", 16)]
    )
    assert names[0].startswith("draft/2x16")
    assert said[-1].startswith("capturing CUDA graphs: 10 of 10 (")
    pool.capture_all(all_keys(pool.batches, TreeShape(2, 4, 16)), said.append)
    assert recorder.recorded == 10  # they stand already


def test_shapes_name_their_graphs() -> None:
    assert [str(key) for key in plain_keys(3)] == ["decode/3x1", "settle/3x1"]
    assert [str(key) for key in TreeShape(3, 1, 4).keys(16)] == ["draft/16x4", "verify/16x4", "settle/16x4"]
    assert TreeShape(2, 4, 16).longest == 3
    assert TreeShape(5, 2, 3).longest == 3  # three nodes have no longer path


@pytest.mark.parametrize("largest", [1, 5, 64, 250, 256, 1000])
def test_the_ladder_ends_at_the_largest_batch_and_pads_little(largest: int) -> None:
    sizes = ladder(largest)
    assert sizes[0] == 1
    assert sizes[-1] == largest
    assert list(sizes) == sorted(set(sizes))
    for small, large in pairwise(sizes):
        assert large - small <= max(1, small // 2 + 1, 32 if small >= 256 else 0)
