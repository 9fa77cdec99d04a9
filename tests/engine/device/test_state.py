"""Where a row's tokens go."""

from __future__ import annotations

import torch

from engine.device.pool import DevicePool
from engine.device.state import DeviceState

CPU = torch.device("cpu")


def make_state(page_size: int = 16) -> DeviceState:
    state = DeviceState(3, 4, page_size, 0, 0, CPU, torch.float32, scrap_page=9)
    state.pages[0, :3] = torch.tensor([5, 2, 7])
    state.pages[1, :1] = torch.tensor([0])
    return state


def test_the_next_tokens_lie_behind_the_committed_ones_page_by_page() -> None:
    state = make_state()
    state.lens[0] = 30
    state.lens[1] = 4
    rows = torch.tensor([0, 1])
    loc = state.slots(rows, state.following(rows, 4))
    assert loc.dtype == torch.int64
    assert loc.tolist() == [[2 * 16 + 14, 2 * 16 + 15, 7 * 16, 7 * 16 + 1], [4, 5, 6, 7]]


def test_any_positions_have_their_slots() -> None:
    state = make_state()
    assert state.slots(torch.tensor([0, 0]), torch.tensor([[0, 33], [16, 15]])).tolist() == [
        [5 * 16, 7 * 16 + 1],
        [2 * 16, 5 * 16 + 15],
    ]


def test_rows_that_pad_a_batch_stay_in_the_scrap_page_however_wide_the_step() -> None:
    for page_size in (16, 64):
        state = make_state(page_size)
        rows = torch.full((2,), state.pad_row)
        loc = state.slots(rows, state.following(rows, 64))
        assert set((loc // page_size).flatten().tolist()) == {9}


def test_slots_of_one_number_beyond_two_to_the_31_do_not_wrap() -> None:
    state = DeviceState(1, 2, 2**20, 0, 0, CPU, torch.float32, scrap_page=4096)
    rows = torch.tensor([state.pad_row])
    assert state.slots(rows, state.following(rows, 1)).item() == 2**32


def test_a_pool_has_scrap_and_scratch_behind_the_ledgers_slots() -> None:
    pool = DevicePool(2, 3, 64, 8, torch.float32, CPU, scrap=16, scratch=10)
    assert pool.k.shape == pool.v.shape == (2, 64 + 16 + 10, 3, 8)
    assert pool.scrap_page * 16 == 64
    assert pool.scratch_base == 80
    assert pool.bytes == 90 * 2 * 2 * 3 * 8 * 4
    pool.keys[1][5] = 1.0
    assert pool.k[1, 5].eq(1).all()
