"""Chunks as servers send them, and the tokens that are counted out of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from workbench.bench.answer import Answer, decode_chunk
from workbench.bench.event_lines import DONE, EventLines


def taken(*chunks: dict[str, Any]) -> Answer:
    answer = Answer(0.0)
    for number, chunk in enumerate(chunks, start=1):
        answer.take(decode_chunk(json.dumps({"id": "r", **chunk}).encode()), float(number))
    answer.ended_at = float(len(chunks))
    return answer


def test_token_ids_are_counted_not_chunks() -> None:
    """B84."""
    answer = taken(
        {"choices": [{"index": 0, "text": "", "token_ids": []}]},
        {"choices": [{"index": 0, "text": "a", "token_ids": [1]}]},
        {"choices": [{"index": 0, "text": "bcd", "token_ids": [2, 3, 4], "finish_reason": "length"}]},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 4}},
    )
    assert answer.chunks == [(2.0, 1), (3.0, 3)]
    assert (answer.input_tokens, answer.output_tokens) == (7, 4)
    assert (answer.ttft, answer.e2e) == (2.0, 4.0)
    assert answer.tpot == pytest.approx(2 / 3)
    assert answer.sequences[0].text == "abcd"
    assert answer.sequences[0].finish_reason == "length"


def test_usage_so_far_counts_a_chunk_where_ids_are_missing() -> None:
    """vLLM's and SGLang's ``continuous_usage_stats``."""
    answer = taken(
        {"choices": [{"delta": {"role": "assistant", "content": ""}}], "usage": {"completion_tokens": 0}},
        {"choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": 1}},
        {"choices": [{"delta": {"content": "b c"}}], "usage": {"completion_tokens": 4}},
    )
    assert answer.chunks == [(2.0, 1), (3.0, 3)]


def test_words_of_reasoning_are_tokens_too() -> None:
    answer = taken({"choices": [{"delta": {"reasoning_content": "hm"}}]}, {"choices": [{"delta": {"content": "a"}}]})
    assert answer.chunks == [(1.0, None), (2.0, None)]
    assert answer.ttft == 1.0


def test_choices_are_kept_apart() -> None:
    answer = taken(
        {"choices": [{"index": 1, "text": "x", "token_ids": [9]}]},
        {"choices": [{"index": 0, "text": "a", "token_ids": [1, 2]}]},
        {"choices": [{"index": 1, "text": "y", "token_ids": [8]}]},
    )
    assert answer.sequences[0].token_ids == [1, 2]
    assert answer.sequences[1].token_ids == [9, 8]
    assert answer.output_tokens == 4


def test_events_are_found_wherever_the_bytes_are_cut() -> None:
    stream = b': comment\r\n\r\ndata: {"a":1}\r\n\r\ndata:{"b":2}\n\ndata: [DONE]\n\n'
    whole = EventLines().feed(stream)
    assert whole == [b'{"a":1}', b'{"b":2}', DONE]
    for cut in range(len(stream)):
        lines = EventLines()
        assert lines.feed(stream[:cut]) + lines.feed(stream[cut:]) == whole
