"""The floor's arithmetic."""

from __future__ import annotations

import pytest

from engine.gpu_check.floor_rate import chunks, floor_rate


def test_prefill_gives_the_first_token_and_steps_the_rest() -> None:
    # 4 requests of 11 tokens: 0.5 s of prefill, 10 steps of 0.05 s
    assert floor_rate(4, 11, 0.5, 0.05) == pytest.approx(44.0)


def test_a_verify_gives_as_many_tokens_as_are_accepted() -> None:
    assert floor_rate(4, 11, 0.5, 0.05, accept=2.5) == pytest.approx(44 / 0.7)


@pytest.mark.parametrize(
    ("clients", "prompt", "chunk", "expected"),
    [(1, 128, 8192, [1]), (64, 128, 8192, [64]), (250, 128, 8192, [64, 64, 64, 58]), (3, 128, 100, [1, 1, 1])],
)
def test_prompts_share_steps_up_to_the_chunk(clients: int, prompt: int, chunk: int, expected: list[int]) -> None:
    assert chunks(clients, prompt, chunk) == expected
