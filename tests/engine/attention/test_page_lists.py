"""Page lists for planners on the host."""

from __future__ import annotations

import pytest

from engine.attention.page_lists import list_pages


def test_only_pages_in_use_are_listed() -> None:
    lists = list_pages([5, 8, 9], [[7, 1], [4, 9, 9], [2, 3, 5]], [1, 2, 3], 4)
    assert lists.pages.tolist() == [7, 1, 4, 9, 2, 3, 5]
    assert lists.page_starts.tolist() == [0, 2, 4, 7]
    assert lists.last_page.tolist() == [1, 4, 1]
    assert lists.q_starts.tolist() == [0, 1, 3, 6]
    assert lists.mask_starts.tolist() == [0, 1, 3, 7]


def test_padding_looks_at_one_key() -> None:
    lists = list_pages([6], [[3, 2]], [2], 4, batch=3, padding_queries=2)
    assert lists.lengths.tolist() == [6, 1, 1]
    assert lists.pages.tolist() == [3, 2, 0, 0]
    assert lists.q_starts.tolist() == [0, 2, 4, 6]


def test_a_batch_of_nothing_but_padding() -> None:
    lists = list_pages([], [], [], 4, batch=2, padding_queries=5)
    assert lists.q_starts.tolist() == [0, 5, 10]
    assert lists.lengths.tolist() == [1, 1]


def test_everything_is_int32() -> None:
    assert {array.dtype.name for array in list_pages([6], [[3, 2]], [2], 4).arrays} == {"int32"}


def test_pages_that_do_not_reach_are_refused() -> None:
    with pytest.raises(ValueError, match="2 pages are needed and 1 are listed"):
        list_pages([5], [[0]], [1], 4)
