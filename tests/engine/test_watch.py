"""What the engine says by itself: useless drafts and a policy that hunts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.sampling_params import SamplingParams
from engine.watch import StepWatch
from probes.events import AlertEvent, StepEvent
from tests.engine.tiny import STORY, answers_of, both_schedulers, prompts, reference, scripted_engine

pytestmark = both_schedulers


def step(number: int, **fields: Any) -> StepEvent:
    base = {"boot_id": "b", "scheduler": "sync", "mode": "plain", "reason": "threshold", "t": float(number)}
    return StepEvent(step=number, **{**base, **fields})


def seen(steps: list[StepEvent]) -> list[tuple[str, int]]:
    alerts: list[tuple[str, int]] = []
    watch = StepWatch(lambda code, level, message, at, data: alerts.append((code, at)))
    for event in steps:
        watch.see(event)
    return alerts


def test_a_hostile_draft_is_called_out_on_the_bus_and_a_good_one_is_not() -> None:
    """B63: a visible warning for drafts that are never accepted."""
    given = prompts(8, seed=41)
    params = SamplingParams(max_tokens=40, temperature=0.0, ignore_eos=True)
    answers = answers_of(reference(given, params))
    for right, expected in ((0, ["acceptance_collapsed"]), (1 << 30, [])):
        llm, sink = scripted_engine(answers, STORY, right=right)
        llm.generate(given, params)
        assert [e.code for e in sink.events if isinstance(e, AlertEvent)] == expected


def test_a_policy_that_hunts_is_called_out_once_an_epoch() -> None:
    """B59: load that hovers at the threshold."""
    hunting = [step(i, t=i * 0.5, requests=4, mode="spec" if i % 2 else "plain", knob_epoch=i // 40) for i in range(80)]
    assert seen(hunting) == [("policy_flaps", 10), ("policy_flaps", 50)]


def slowly(i: int) -> StepEvent:
    return step(i, t=i * 5.0, requests=4, mode="spec" if i % 2 else "plain")


def by_hand(i: int) -> StepEvent:
    on = bool(i % 2)
    return step(i, t=i * 0.1, requests=4, reason="spec_on" if on else "spec_off", mode="spec" if on else "plain")


def with_prefills_between(i: int) -> StepEvent:
    return step(i, t=i * 0.1, requests=i % 2, mode="spec" if i % 2 else "prefill")


@pytest.mark.parametrize("made", [slowly, by_hand, with_prefills_between])
def test_ordinary_switching_is_no_alert(made: Callable[[int], StepEvent]) -> None:
    assert seen([made(i) for i in range(40)]) == []
