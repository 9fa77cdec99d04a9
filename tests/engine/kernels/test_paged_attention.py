"""Decode, tree verification and draft nodes over pages: the kernel and its reference against a plain softmax."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from engine.kernels import paged_attention as module
from engine.kernels.attention_tiles import LEAST_KEYS, extend_tile, fitting, split_count, verify_tile
from engine.kernels.paged_attention import MOST_TAIL, new_arrivals, paged_attention
from tests.engine.attention.cases import Heads, Pages, Verify, node_case, tailed_case, verify_case

HEADS = {"grouped": Heads(4, 2, 16), "thirds": Heads(9, 3, 32), "single": Heads(2, 2, 16)}


def run(case: Verify, arrivals: torch.Tensor | None = None) -> torch.Tensor:
    batch = case.batch
    out = paged_attention(
        case.q,
        case.pages.k,
        case.pages.v,
        rows=batch.rows,
        width=batch.width,
        pages=batch.pages,
        lens=batch.lens,
        page_size=batch.page_size,
        tail_loc=batch.tail_loc,
        tail_mask=batch.tail_mask,
        bound=batch.bound,
        arrivals=arrivals,
    )
    return out.view(out.shape[0], -1)


def assert_attends(case: Verify) -> None:
    torch.testing.assert_close(run(case).double(), case.wanted, atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("page_size", [16, 64])
def test_decode(implementation: None, heads: Heads, page_size: int) -> None:
    pages = Pages(heads, [90, 40, 8], page_size)
    assert_attends(verify_case(pages, [80, 33, 2], 1, "all"))


@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("width", [2, 4, 6])
def test_trees(implementation: None, heads: Heads, width: int) -> None:
    pages = Pages(heads, [90, 40], 16, seed=width)
    assert_attends(verify_case(pages, [77, 30], width))


def test_chains(implementation: None) -> None:
    pages = Pages(HEADS["grouped"], [90, 40], 16)
    assert_attends(verify_case(pages, [77, 30], 5, "chain"))


def test_wide_trees_take_several_row_blocks(implementation: None) -> None:
    pages = Pages(Heads(8, 1, 16), [60, 40], 16)
    assert_attends(verify_case(pages, [30, 9], 16))


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 32, 33, 64])
def test_prefixes_that_end_at_the_borders_of_pages_and_tiles(implementation: None, length: int) -> None:
    pages = Pages(HEADS["grouped"], [80, 20], 16, seed=length)
    assert_attends(verify_case(pages, [length, 3], 3))


@pytest.mark.parametrize("page_size", [4, 24, 256])
def test_pages_smaller_than_a_tile_larger_and_no_power_of_two(implementation: None, page_size: int) -> None:
    pages = Pages(HEADS["grouped"], [80, 20], page_size)
    assert_attends(verify_case(pages, [70, 13], 3))


@pytest.mark.parametrize(("width", "tail"), [(1, 1), (2, 6), (4, 33), (8, 64)])
def test_draft_nodes_see_scratch_slots_by_their_bits(implementation: None, width: int, tail: int) -> None:
    pages = Pages(HEADS["grouped"], [50, 20], 16, seed=tail, scratch=2 * tail)
    assert_attends(node_case(pages, [40, 11], width, tail))


def test_no_tail(implementation: None) -> None:
    pages = Pages(HEADS["grouped"], [50, 20], 16)
    assert_attends(tailed_case(pages, [40, 11], [[], []], [[0], [0]], 1, masked=False))


def test_tail_slots_and_masks_may_be_parts_of_wider_tensors(implementation: None) -> None:
    pages = Pages(HEADS["grouped"], [50, 20], 16)
    case = verify_case(pages, [40, 11], 3)
    assert case.batch.tail_mask is not None
    wide = [torch.cat([part, part + 1], dim=1)[:, :3] for part in (case.batch.tail_loc, case.batch.tail_mask)]
    assert_attends(replace(case, batch=replace(case.batch, tail_loc=wide[0], tail_mask=wide[1])))


def test_a_query_that_sees_nothing_gives_zeros(implementation: None) -> None:
    pages = Pages(HEADS["grouped"], [20, 20], 16)
    assert_attends(tailed_case(pages, [0, 9], [[0, 1], [2, 3]], [[0, 1], [1, 3]], 2, masked=True))


def test_a_bound_beyond_the_page_table_changes_nothing(implementation: None) -> None:
    pages = Pages(HEADS["grouped"], [50, 20], 16)
    assert_attends(verify_case(pages, [40, 11], 3, bound=4000))


def test_what_stands_behind_a_prefix_is_never_seen(implementation: None) -> None:
    pages = Pages(HEADS["grouped"], [64], 16)
    case = verify_case(pages, [37], 3)
    behind = pages.slots(0, 40, 64)
    pages.k[behind], pages.v[behind] = 1e4, 1e4
    assert_attends(case)


LONG = [5 * LEAST_KEYS + 7, 2 * LEAST_KEYS, 20]


def split_case() -> Verify:
    pages = Pages(Heads(2, 1, 16), [length + 8 for length in LONG], 64)
    return verify_case(pages, LONG, 3)


def test_a_long_prefix_is_split_in_the_interpreter() -> None:
    """What the next three tests stand on."""
    case = split_case()
    assert split_count(len(LONG), case.batch.bound - 3, sms=4) == 2


def test_parts_of_a_split_prefix_are_merged(interpreted: None) -> None:
    assert_attends(split_case())


def test_many_parts(interpreted: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "multiprocessors", lambda device: 64)
    assert_attends(split_case())


def test_counters_are_zero_after_a_call_so_that_the_next_one_can_use_them(interpreted: None) -> None:
    case, arrivals = split_case(), new_arrivals(torch.device("cpu"))
    first = run(case, arrivals)
    assert not arrivals.any()
    assert torch.equal(run(case, arrivals), first)


def test_float16(implementation: None) -> None:
    """bfloat16 is tests/gpu's: the interpreter multiplies its bit patterns."""
    pages = Pages(HEADS["grouped"], [90, 40], 16, torch.float16)
    case = verify_case(pages, [77, 30], 4)
    torch.testing.assert_close(run(case).double(), case.wanted, atol=2e-3, rtol=2e-3)


def test_float64_is_exact() -> None:
    pages = Pages(HEADS["thirds"], [90, 40], 16, torch.float64)
    case = verify_case(pages, [77, 30], 4)
    torch.testing.assert_close(run(case), case.wanted, atol=1e-12, rtol=1e-12)


def test_more_tail_keys_than_bits_are_refused() -> None:
    pages = Pages(HEADS["grouped"], [20], 16, scratch=65)
    with pytest.raises(ValueError, match="65 tail keys a request; a mask has bits for 64"):
        run(tailed_case(pages, [9], [list(range(MOST_TAIL + 1))], [[1]], 1, masked=False))


def test_a_full_batch_is_not_split() -> None:
    assert split_count(2000, 8192, sms=132) == 1


def test_a_tile_has_room_for_the_tail() -> None:
    assert verify_tile(16, 64, 128, torch.bfloat16, few=False).keys == 64


@pytest.mark.parametrize(("queries", "tile"), [(64, (64, 64)), (65, (128, 32)), (1024, (128, 32)), (1025, (128, 64))])
def test_longer_chunks_take_larger_tiles(queries: int, tile: tuple[int, int]) -> None:
    chosen = extend_tile(queries, 128, torch.bfloat16)
    assert (chosen.rows, chosen.keys) == tile


class SmallGpu:
    shared_memory_per_block = 48 << 10
    shared_memory_per_block_optin = 64 << 10


@pytest.mark.parametrize(("tail", "keys"), [(4, 32), (64, 64)])
def test_less_shared_memory_takes_keys_off_the_way_and_then_off_the_tile(
    monkeypatch: pytest.MonkeyPatch, tail: int, keys: int
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SmallGpu)
    tile = verify_tile(64, tail, 128, torch.bfloat16, few=True)
    small = fitting(tile, 128, 2, torch.device("cuda"), tail)
    assert (small.stages, small.keys) == (2, keys)
