"""Sums over steps."""

from __future__ import annotations

from typing import Any

import pytest

from probes.events import KvUse, StepEvent
from workbench.demo.step_sums import Pace, StepSums, StepTimer


def step(number: int, mode: Any = "plain", requests: int = 1, **fields: Any) -> StepEvent:
    given: dict[str, Any] = {"boot_id": "b", "t": number * 0.01, "scheduler": "sync", "reason": "threshold"}
    return StepEvent(step=number, mode=mode, requests=requests, **(given | fields))


def test_switches_are_of_decisions() -> None:
    """A prefill in between, or a request with one token left, is no change of mind."""
    sums = StepSums()
    steps = [
        step(1, "prefill", 0, reason="prefill"),
        step(2, "spec"),
        step(3, "prefill", 0, reason="prefill"),
        step(4, "spec"),
        step(5, "plain", reason="near_end"),
        step(6, "plain", reason="above_threshold"),
        step(7, "mixed", reason="above_threshold"),
        step(8, "spec"),
    ]
    assert [sums.add(event, 1.0) for event in steps] == [False] * 5 + [True, False, True]
    assert sums.switches == 2


def test_accept_length_is_a_ratio_of_sums_with_the_bonus() -> None:
    sums = StepSums()
    assert sums.accept_length is None
    sums.add(step(1, "spec", 1, verified=1, correct_drafts=2), 1.0)
    sums.add(step(2, "spec", 3, verified=3, correct_drafts=0), 1.0)
    assert sums.accept_length == pytest.approx(1.5)


def test_pace_is_by_decode_requests_without_prompts() -> None:
    sums = StepSums()
    for number in range(1, 6):
        sums.add(step(number, requests=2, emitted=4), 1000.0)
    sums.add(step(6, "mixed", 2, emitted=3, prefill_tokens=40, prefill_requests=1), 9000.0)
    assert sums.by_requests[2].typical_tok_s == pytest.approx(4000)
    assert sums.pace.tok_s == pytest.approx(23 / 0.014)


def test_too_few_steps_have_no_pace() -> None:
    sums = StepSums()
    sums.add(step(1, emitted=1), 1000.0)
    assert sums.pace.tok_s is None


def test_a_disturbed_step_does_not_move_the_typical_pace_but_shows_in_the_spread() -> None:
    quiet, disturbed = Pace(), Pace()
    for index in range(20):
        quiet.add(2, 1000.0)
        disturbed.add(2, 50_000.0 if index % 5 == 0 else 1000.0)
    assert disturbed.typical_tok_s == quiet.typical_tok_s == pytest.approx(2000)
    assert quiet.spread == pytest.approx(1.0)
    assert disturbed.spread == pytest.approx(50)


def test_slots_that_disagree_and_slots_in_use() -> None:
    sums = StepSums()
    sums.add(step(1, slots_expected=16, slots_reserved=16, slots_written=16, kv={"target": KvUse(used=9, total=99)}), 1)
    assert (sums.miscounted, sums.in_use) == ([], 9)
    pools = {"target": KvUse(used=1, total=99), "draft": KvUse(used=2, total=99)}
    sums.add(step(2, slots_expected=16, slots_reserved=16, slots_written=1, kv=pools), 1)
    assert (sums.miscounted, sums.in_use) == ([2], 3)


def test_a_step_costs_the_time_since_the_last_one_unless_the_engine_was_idle_or_events_are_missing() -> None:
    timer = StepTimer()
    assert timer.cost_us(step(1, t=10.0, cpu_us={"run": 700, "accept": 50})) == 750
    assert timer.cost_us(step(2, t=10.002, round_us=1, cpu_us={"run": 700})) == pytest.approx(2000)
    assert timer.cost_us(step(3, t=99.0, round_us=0, cpu_us={"run": 800})) == 800
    assert timer.cost_us(step(7, t=99.5, round_us=5, cpu_us={"run": 900})) == 900
