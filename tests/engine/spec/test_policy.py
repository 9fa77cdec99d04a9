"""The words of the policy's decisions, with the numbers that decided."""

from __future__ import annotations

import pytest

from engine.spec.policy import ThresholdPolicy
from probes.knobs import Knobs


def decided(policy: ThresholdPolicy, requests: int, threshold: int) -> tuple[str, str]:
    choice = policy.decide(Knobs(threshold=threshold, hysteresis=1), 0, requests, True, lambda width: None)
    return choice.reason, choice.detail


@pytest.mark.parametrize(
    ("requests", "words"), [(0, "0 decode requests <= 4"), (1, "1 decode request <= 4"), (2, "2 decode requests <= 4")]
)
def test_one_request_is_one_request(requests: int, words: str) -> None:
    assert decided(ThresholdPolicy(), requests, 4) == ("threshold", words)


def test_going_plain_and_waiting_to_resume() -> None:
    policy = ThresholdPolicy()
    assert decided(policy, 3, 2) == ("above_threshold", "3 decode requests > threshold 2")
    held = "2 decode requests <= threshold 2, but went plain: resumes at 1"
    assert decided(policy, 2, 2) == ("threshold_hold", held)
    assert decided(policy, 1, 2) == ("threshold", "1 decode request <= 1")
