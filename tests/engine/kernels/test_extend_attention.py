"""Prefill chunks over pages: the kernel and its reference against a plain softmax."""

from __future__ import annotations

import pytest
import torch

from engine.kernels.extend_attention import extend_attention
from tests.engine.attention.cases import Extend, Heads, Pages, extend_case

HEADS = {"grouped": Heads(4, 2, 16), "thirds": Heads(9, 3, 32), "single": Heads(2, 2, 16)}


def run(case: Extend) -> torch.Tensor:
    batch = case.batch
    out = extend_attention(
        case.q,
        case.pages.k,
        case.pages.v,
        rows=batch.rows,
        starts=batch.starts,
        cu_q=batch.cu_q,
        max_q=batch.max_q,
        pages=batch.pages,
        page_size=batch.page_size,
        host_lengths=batch.host_lengths,
        host_q=batch.host_q,
    )
    return out.view(out.shape[0], -1)


def assert_attends(case: Extend) -> None:
    torch.testing.assert_close(run(case).double(), case.wanted, atol=2e-6, rtol=2e-5)


@pytest.mark.parametrize("heads", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("page_size", [16, 24, 64])
def test_ragged_chunks_with_and_without_a_prefix(implementation: None, heads: Heads, page_size: int) -> None:
    pages = Pages(heads, [90, 40, 64], page_size)
    assert_attends(extend_case(pages, [(50, 30), (0, 40), (63, 1)]))


@pytest.mark.parametrize("start", [0, 1, 15, 16, 17, 31, 32, 33, 64])
def test_chunks_that_begin_at_the_borders_of_pages_and_tiles(implementation: None, start: int) -> None:
    pages = Pages(HEADS["grouped"], [100], 16, seed=start)
    assert_attends(extend_case(pages, [(start, 36)]))


@pytest.mark.parametrize("chunk", [1, 2, 15, 16, 17, 33])
def test_chunks_of_every_remainder(implementation: None, chunk: int) -> None:
    pages = Pages(HEADS["thirds"], [100], 16, seed=chunk)
    assert_attends(extend_case(pages, [(21, chunk)]))


def test_what_stands_behind_a_chunk_is_never_seen(implementation: None) -> None:
    pages = Pages(HEADS["grouped"], [64], 16)
    case = extend_case(pages, [(10, 27)])
    behind = pages.slots(0, 37, 64)
    pages.k[behind], pages.v[behind] = 1e4, 1e4
    assert_attends(case)


def test_float16(implementation: None) -> None:
    """bfloat16 is tests/gpu's: the interpreter multiplies its bit patterns."""
    pages = Pages(HEADS["grouped"], [90, 40], 16, torch.float16)
    case = extend_case(pages, [(50, 30), (0, 40)])
    torch.testing.assert_close(run(case).double(), case.wanted, atol=2e-3, rtol=2e-3)


def test_float64_is_exact() -> None:
    pages = Pages(HEADS["thirds"], [90, 40], 16, torch.float64)
    case = extend_case(pages, [(50, 30), (0, 40)])
    torch.testing.assert_close(run(case), case.wanted, atol=1e-12, rtol=1e-12)
