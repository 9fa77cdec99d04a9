"""The rule as the threshold probe knows it, against steps that keep it and steps that break it."""

from __future__ import annotations

from typing import Any

import pytest

from probes.ci.threshold_rule import ThresholdRule
from probes.events import RequestEvent, StepEvent
from probes.knobs import Knobs
from tests.workbench import made_events as made


class Bus:
    """Says what an engine would say, event by event."""

    def __init__(self, threshold: int = 4, hysteresis: int = 2) -> None:
        self.rule = ThresholdRule(Knobs(threshold=threshold, hysteresis=hysteresis), 0)
        self.number = 0

    def phase(self, phase: Any, *names: str) -> None:
        for name in names:
            event = RequestEvent(boot_id=made.BOOT, step=self.number, t=made.T0, request_id=name, phase=phase)
            self.rule.request(event)

    def prefill(self, *names: str, **given: Any) -> None:
        """A step of its own for prompts, which ends with their first tokens."""
        self.number += 1
        self.phase("arrived", *names)
        self.phase("first_token", *names)
        self.rule.step(made.prefill(self.number, reason="prefill", **given))

    def step(self, requests: int, *ended: str, **given: Any) -> StepEvent:
        """A decode step, in which some requests end."""
        self.number += 1
        self.phase("finished", *ended)
        step = made.step(self.number, requests, **given)
        self.rule.step(step)
        return step

    def load(self, count: int) -> list[str]:
        names = [f"r{index}" for index in range(count)]
        self.prefill(*names)
        return names


PLAIN: dict[str, Any] = {"spec": False, "reason": "above_threshold"}
HELD: dict[str, Any] = {"spec": False, "reason": "threshold_hold"}


def test_a_ramp_up_and_down_with_hysteresis_keeps_the_rule() -> None:
    """Up past 4, plain at 5; back at 4 and 3 still plain, at 2 speculating again."""
    bus = Bus()
    bus.load(4)
    bus.step(4)
    bus.prefill("late")
    bus.step(5, **PLAIN)
    bus.step(5, "late", **PLAIN)
    bus.step(4, "r0", **HELD)
    bus.step(3, "r1", **HELD)
    bus.step(2)
    assert bus.rule.violations == []
    assert (bus.rule.to_plain, bus.rule.to_spec, bus.rule.held) == (1, 1, 2)
    assert bus.rule.loads == {2, 3, 4, 5}


def test_prompts_share_plain_steps_and_have_their_own_while_speculating() -> None:
    bus = Bus()
    bus.load(6)
    bus.number += 1
    bus.phase("first_token", "more")
    step = made.step(bus.number, 6, **PLAIN, mode="mixed", prefill_requests=1, prefill_tokens=9)
    bus.rule.step(step)
    bus.step(7, **PLAIN)
    assert bus.rule.violations == []


def test_near_the_end_and_out_of_memory_a_step_may_be_plain() -> None:
    bus = Bus()
    bus.load(2)
    bus.step(2, widths={"16": 1, "1": 1})
    bus.step(2, spec=False, reason="near_end")
    bus.step(2, spec=False, reason="memory")
    assert bus.rule.violations == []


@pytest.mark.parametrize(
    ("load", "given", "said"),
    [
        (2, PLAIN, "is plain with 2 decode requests, threshold 4, resume point 2"),
        (8, {"spec": True, "reason": "threshold"}, "speculates with 8 decode requests, threshold 4"),
        (8, HELD, "gives the reason threshold_hold, not above_threshold"),
        (8, {**PLAIN, "widths": {"16": 8}}, "is plain with widths {'16': 8}"),
        (2, {"widths": {"3": 2}}, "speculates with widths {'3': 2}, not 16"),
        (2, {"widths": {"1": 2}}, "speculates with widths {'1': 2}, not 16"),
        (2, {"reason": "spec_on"}, "gives the reason spec_on, not threshold"),
        (2, {"knob_epoch": 3}, "somebody turned them"),
    ],
)
def test_what_breaks_it(load: int, given: dict[str, Any], said: str) -> None:
    bus = Bus()
    bus.load(load)
    bus.step(load, **given)
    (violation,) = (text for text in bus.rule.violations if said in text)
    assert violation.startswith("step 2 (")


def test_resuming_too_early_is_found() -> None:
    bus = Bus()
    bus.load(6)
    bus.step(6, "r0", "r1", **PLAIN)
    bus.step(4)
    assert bus.rule.violations[0] == (
        "step 3 (spec, threshold): speculates with 4 decode requests, threshold 4, resume point 2"
    )
    assert bus.rule.violations[-1].endswith("gives the reason threshold, not threshold_hold")


def test_a_step_cannot_justify_itself_by_a_wrong_number_of_requests() -> None:
    """It says 4 and speculates; six are running."""
    bus = Bus()
    bus.load(6)
    bus.step(4)
    assert any("has 4 decode requests, 6 are running by the request events" in text for text in bus.rule.violations)
    assert any("speculates with 6 decode requests" in text for text in bus.rule.violations)


def test_plain_decodes_left_out_of_a_prompts_step_are_found() -> None:
    bus = Bus()
    bus.load(6)
    bus.step(6, **PLAIN)
    bus.prefill("late")
    assert "6 plain decodes were left out of a prompt's step" in bus.rule.violations[0]
