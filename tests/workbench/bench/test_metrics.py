"""Figures of made answers, worked out by hand."""

from __future__ import annotations

import pytest

from workbench.bench.answer import Answer, Usage
from workbench.bench.metrics import Run, accept_length, figures, itl_of, peak_rate
from workbench.bench.request_error import RequestError


def answer(sent: float, chunks: list[tuple[float, int | None]], tokens: int, prompt: int = 10) -> Answer:
    return Answer(
        sent_at=sent,
        ended_at=chunks[-1][0],
        id="a",
        chunks=chunks,
        usage=Usage(prompt_tokens=prompt, completion_tokens=tokens),
    )


def test_a_chunk_of_several_tokens_shares_the_time_before_it() -> None:
    """B84: one token at 1 s, then chunks of 3 and 2 tokens 0.6 s apart."""
    gaps = itl_of(answer(0.0, [(1.0, 1), (1.6, 3), (2.2, 2)], 6))
    assert gaps == pytest.approx([0.2, 0.2, 0.2, 0.3, 0.3])


def test_chunks_without_counts_share_what_usage_says() -> None:
    """B84: an endpoint that does not say how many tokens a chunk has: 6 tokens in 3 chunks are 2 each, never 1."""
    found = answer(0.0, [(1.0, None), (1.6, None), (2.2, None)], 6)
    assert found.tokens_by_chunk == [(1.0, 2.0), (1.6, 2.0), (2.2, 2.0)]
    assert itl_of(found) == pytest.approx([0.3, 0.3, 0.3, 0.3])
    mixed = answer(0.0, [(1.0, 1), (1.6, None)], 6)
    assert mixed.tokens_by_chunk == [(1.0, 1), (1.6, 5.0)]


@pytest.mark.parametrize(
    ("chunks", "duration"),
    [
        ([(0.2, 50), (1.4, 50)], 1.5),
        ([(0.1, 1), (0.2, 7)], 0.2),
        ([(t / 10, 1 + t % 4) for t in range(1, 38)], 3.7),
        ([(t / 3, 3) for t in range(1, 31)], 10.0),
    ],
)
def test_peak_is_never_below_average(chunks: list[tuple[float, int]], duration: float) -> None:
    """B84, whatever the duration: a window of a whole second over a run of 1.5 would show half."""
    tokens = sum(count for _, count in chunks)
    assert peak_rate([answer(0.0, list(chunks), tokens)], duration) >= tokens / duration * (1 - 1e-9)


def test_peak_is_that_of_the_fullest_second() -> None:
    bursts: list[tuple[float, int | None]] = [(0.5, 2), (4.0, 10), (4.5, 10), (9.5, 2)]
    assert peak_rate([answer(0.0, bursts, 24)], 10.0) == pytest.approx(20.0)


def test_figures_of_two_runs_are_of_all_their_tokens_and_seconds() -> None:
    first = Run(2.0, [answer(0.0, [(0.5, 1), (2.0, 4)], 5)], most_in_flight=1, verified=2, correct_drafts=2)
    failed = Answer(0.0, 0.1, error=RequestError("429 queue_full", "full", status=429))
    second = Run(3.0, [answer(1.0, [(1.25, 1), (4.0, 9)], 10, prompt=30), failed], 2, verified=8, correct_drafts=3)
    found = figures([first, second])
    assert (found["completed"], found["failed"], found["errors"]) == (2, 1, {"429 queue_full": 1})
    assert (found["total_input_tokens"], found["total_output_tokens"]) == (40, 15)
    assert found["output_throughput"] == pytest.approx(15 / 5)
    assert found["total_token_throughput"] == pytest.approx(55 / 5)
    assert found["request_throughput"] == pytest.approx(2 / 5)
    assert found["mean_ttft_ms"] == pytest.approx((500 + 250) / 2)
    assert found["p50_tpot_ms"] == pytest.approx((1500 / 4 + 2750 / 9) / 2)
    assert found["mean_e2el_ms"] == pytest.approx((2000 + 3000) / 2)
    # A ratio of sums, not the mean of 2.0 and 1.375.
    assert found["accept_length"] == pytest.approx(1.5)
    assert found["max_concurrent_requests"] == 2


def test_nothing_is_null_and_not_zero() -> None:
    found = figures([Run(1.0, [])])
    assert found["accept_length"] is None
    assert found["p99_itl_ms"] is None
    assert found["output_throughput"] == 0
    assert accept_length([Run(1.0, [], verified=4)]) == 1.0
