"""Speculation's gain by load, against values that are known because the steps' times were made."""

from __future__ import annotations

import random
from typing import Any

import pytest

from probes.events import StepEvent
from tests.workbench import made_events as made
from tests.workbench.tui.made_session import MadeSession
from workbench.tui.gain import FEWEST, KEPT, LOADS, Gain, GainMeter, Verdict, compare, is_steady

SHAPE = (2, 4, 16)


def meter_of(session: MadeSession) -> GainMeter:
    meter = GainMeter()
    for item in session.items:
        if isinstance(item, StepEvent):
            meter.add(item)
    return meter


def both(requests: int, seconds: float = 10.0) -> MadeSession:
    """On, then off, at one load."""
    session = MadeSession()
    session.set(spec="on")
    session.decode(seconds, requests)
    session.set(spec="off")
    session.decode(seconds, requests)
    return session


@pytest.mark.parametrize(("requests", "verdict"), [(1, Verdict.WINNING), (3, Verdict.WINNING), (20, Verdict.LOSING)])
def test_the_gain_is_the_one_that_was_made(requests: int, verdict: Verdict) -> None:
    """B84: tokens are counted, the bonus included, not steps."""
    session = both(requests)
    gain = meter_of(session).at(requests, SHAPE, session.t)
    on = 2.4 * requests / session.seconds_of(requests, spec=True)
    off = requests / session.seconds_of(requests, spec=False)
    assert gain.on is not None
    assert gain.off is not None
    assert gain.on.tok_s == pytest.approx(on, rel=0.02)
    assert gain.off.tok_s == pytest.approx(off, rel=0.001)
    assert gain.ratio is not None
    assert gain.low is not None
    assert gain.high is not None
    assert gain.ratio == pytest.approx(on / off, rel=0.02)
    assert gain.low <= gain.ratio <= gain.high
    assert gain.verdict is verdict
    assert gain.pooled is None


def test_a_spread_around_one_is_too_close_to_tell() -> None:
    draw = random.Random(3)
    on, off = ([(3, int(draw.gauss(50_000, 5_000)), float(n)) for n in range(40)] for _ in range(2))
    gain = compare(3, on, off)
    assert gain.low is not None
    assert gain.high is not None
    assert gain.low < 1.0 < gain.high
    assert gain.verdict is Verdict.CLOSE


def test_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """Steps with random tokens and times, 100 times over: 90% intervals, made and not fitted."""
    draw = random.Random(7)
    hits = 0
    for _ in range(100):
        on = [(draw.choice((1, 2, 3)), int(draw.gauss(60_000, 3_000)), 0.0) for _ in range(60)]
        off = [(1, int(draw.gauss(40_000, 2_000)), 0.0) for _ in range(60)]
        gain = compare(1, on, off)
        assert gain.low is not None
        assert gain.high is not None
        hits += gain.low <= (2 / 60) / (1 / 40) <= gain.high
    assert 78 <= hits <= 98


def test_a_few_disturbed_rounds_do_not_count() -> None:
    on = [(2, 50_000, float(n)) for n in range(40)]
    off = [(1, 40_000 if n % 10 else 900_000, float(n)) for n in range(40)]
    assert compare(1, on, off).ratio == pytest.approx(2 / 50 * 40)


def test_too_few_steps_are_unknown_and_counted() -> None:
    session = MadeSession()
    session.decode(3, 3)
    session.set(spec="off")
    session.decode(0.5, 3)
    gain = meter_of(session).at(3, SHAPE, session.t)
    assert gain.verdict is Verdict.UNKNOWN
    assert gain.on is not None
    assert gain.off is None
    assert 0 < gain.off_steps < FEWEST
    assert gain.ratio is None
    assert gain.age(session.t) is None


def test_age_is_that_of_the_older_side() -> None:
    session = both(3)
    session.set(spec="on")
    session.decode(40, 3)
    meter = meter_of(session)
    assert meter.at(3, SHAPE, session.t).age(session.t) == pytest.approx(40, abs=0.3)
    assert meter.at(3, SHAPE, session.t + 100).age(session.t + 100) == pytest.approx(140, abs=0.3)


def test_another_threshold_keeps_what_was_measured_and_another_shape_does_not_count() -> None:
    session = both(3)
    session.set(threshold=9)
    session.set(spec="on", steps=4, topk=1, draft_tokens=5)
    session.decode(5, 3)
    meter = meter_of(session)
    assert meter.at(3, SHAPE, session.t).ratio == pytest.approx(2.4 / 86 * 46, rel=0.02)
    other = meter.at(3, (4, 1, 5), session.t)
    assert other.on is not None, "it has steps of its own"
    assert other.ratio is not None, "and shares the plain ones"
    assert meter.at(3, (8, 1, 9), session.t).on is None


def test_an_unknown_load_is_pooled_with_neighbours_that_have_both_and_says_so() -> None:
    session = MadeSession()
    for spec in ("on", "off"):
        session.set(spec=spec)
        for requests in (15, 17):
            session.decode(4, requests)
    meter = meter_of(session)
    gain = meter.at(16, SHAPE, session.t)
    assert gain.pooled == (15, 17)
    assert gain.requests == 16
    assert gain.ratio == pytest.approx(2.4 / 216 * 72, rel=0.03)
    assert meter.at(20, SHAPE, session.t).ratio is None, "too far away"


def test_pooled_sides_have_the_same_mix_of_loads() -> None:
    """Many on steps at 15 and many off steps at 17: without one mix the ratio would be of the loads."""
    session = MadeSession()
    for spec, loads in (("on", (15, 15, 15, 17)), ("off", (15, 17, 17, 17))):
        session.set(spec=spec)
        for requests in loads:
            session.decode(4, requests)
    gain = meter_of(session).at(16, SHAPE, session.t)
    assert gain.ratio == pytest.approx(2.4 / 216 * 72, rel=0.03)


@pytest.mark.parametrize(
    ("before", "step"),
    [
        ({"requests": 2}, {}),  # a request began
        ({}, {"finished": 1}),
        ({"finished": 1}, {}),
        ({"prefill_tokens": 100, "mode": "mixed"}, {}),
        ({"spec": False}, {}),  # the switch: the draft catches up
        ({}, {"widths": {"16": 2, "1": 1}}),
        ({}, {"replanned": True}),
        ({}, {"knob_epoch": 1}),
        ({}, {"mode": "mixed", "prefill_tokens": 10}),
    ],
)
def test_steps_that_show_something_else_do_not_count(before: dict[str, Any], step: dict[str, Any]) -> None:
    assert is_steady(made.step(1, 3), made.step(2, 3))
    assert not is_steady(made.step(1, **{"requests": 3, **before}), made.step(2, 3, **step))


def test_time_is_the_next_steps_round_and_idle_and_lost_steps_have_none() -> None:
    meter = GainMeter()
    for number in range(1, 4):
        meter.add(made.step(number, 3, round_us=70_000))
    meter.add(made.step(4, 3, round_us=0))  # idle before it: step 3 has no time
    meter.add(made.step(6, 3, round_us=70_000))  # step 5 was lost: nor has step 4
    assert meter.at(3, SHAPE, made.T0).on_steps == 1


def test_speculating_steps_of_unknown_shape_are_not_taken_for_plain() -> None:
    meter = GainMeter()
    for number in range(1, 60):
        meter.add(made.step(number, 3, spec_info=None))
    gain = meter.at(3, SHAPE, made.T0 + 6)
    assert (gain.on_steps, gain.off_steps) == (0, 0)


def test_load_is_what_most_steps_of_the_last_seconds_had() -> None:
    meter = GainMeter()
    assert meter.load(made.T0) is None
    for number, requests in enumerate([9] * 30 + [3, 3, 4, 3, 3], start=1):
        meter.add(made.step(number, requests, t=made.T0 + number * 0.4))
    assert meter.load(made.T0 + 35 * 0.4) == 3
    assert meter.load(made.T0 + 60) is None
    assert meter.last_load == 3


def test_memory_is_bounded() -> None:
    """B104."""
    meter = GainMeter()
    number = 0
    for requests in range(1, LOADS + 50):
        for _ in range(KEPT // 8):
            number += 1
            meter.add(made.step(number, requests, spec=False, t=made.T0 + number * 0.01))
    assert len(meter._samples) <= LOADS
    for _ in range(3 * KEPT):
        number += 1
        meter.add(made.step(number, 3, t=made.T0 + number * 0.01))
    assert meter.at(3, SHAPE, made.T0 + number).on_steps == KEPT


def test_an_interval_stands_for_a_while_and_the_same_steps_give_the_same() -> None:
    """Working it out costs milliseconds: not at every redraw."""
    session = both(3)
    meter = meter_of(session)
    first = meter.at(3, SHAPE, session.t)
    session.decode(1, 3)
    for item in session.items[-5:]:
        if isinstance(item, StepEvent):
            meter.add(item)
    assert meter.at(3, SHAPE, session.t - 0.5) is first
    assert meter.at(3, SHAPE, session.t + 60) is not first
    assert compare(3, *([(n % 3, 50_000, 0.0) for n in range(30)],) * 2) == compare(
        3, *([(n % 3, 50_000, 0.0) for n in range(30)],) * 2
    )


def test_by_load_lists_what_one_side_knows() -> None:
    session = both(3)
    session.set(spec="auto")
    session.decode(5, 2)
    gains = meter_of(session).by_load(SHAPE, session.t)
    assert [gain.requests for gain in gains] == [2, 3]
    assert gains[0].off is None
    assert gains[1].ratio is not None
    assert Gain(1).verdict is Verdict.UNKNOWN


def test_under_overlap_a_round_is_as_long_as_the_step_before_so_that_one_must_count_too() -> None:
    """The first step after a switch catches the draft up: its time must not count for the second."""
    overlapped = MadeSession()
    overlapped.decode(1, 3, spec=False, scheduler="overlap")
    overlapped.decode(1, 3, spec=True, scheduler="overlap")
    plain = sum(step.mode == "plain" for step in overlapped.items if isinstance(step, StepEvent))
    spec = sum(step.mode == "spec" for step in overlapped.items if isinstance(step, StepEvent))
    gain = meter_of(overlapped).at(3, SHAPE, overlapped.t)
    assert (gain.off_steps, gain.on_steps) == (plain - 2, spec - 3), "the newest one's time is not known yet"
