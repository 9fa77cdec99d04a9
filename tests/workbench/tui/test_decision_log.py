"""Runs of equal decisions."""

from __future__ import annotations

from tests.workbench import made_events as made
from workbench.tui.decision_log import KEPT, DecisionLog, Note, Run


def runs(log: DecisionLog) -> list[tuple[str, int, int, int]]:
    return [(e.mode_words, e.first_step, e.last_step, e.steps) for e in log.entries if isinstance(e, Run)]


def test_equal_decisions_are_one_run() -> None:
    log = DecisionLog()
    for number in range(1, 41):
        log.take(made.step(number, 3 if number <= 10 else 7 if number <= 30 else 2))
    assert runs(log) == [("SPEC", 1, 10, 10), ("PLAIN", 11, 30, 20), ("SPEC", 31, 40, 10)]
    assert log.by_reason == {"threshold": 20, "above_threshold": 20}
    assert (log.steps, log.switches) == (40, 2)
    first = log.entries[0]
    assert isinstance(first, Run)
    assert (first.least, first.most, round(first.seconds, 3)) == (3, 3, 0.9)


def test_prompts_between_decode_steps_end_no_run() -> None:
    log = DecisionLog()
    for step in (made.prefill(1), made.step(2, 1), made.prefill(3), made.step(4, 2), made.prefill(5)):
        log.take(step)
    assert runs(log) == [("PREFILL", 1, 1, 1), ("SPEC", 2, 5, 4)]
    second = log.entries[1]
    assert isinstance(second, Run)
    assert (second.least, second.most, dict(second.modes)) == (1, 2, {"spec": 2, "prefill": 2})
    assert log.switches == 0


def test_mixed_and_plain_for_one_reason_are_one_run() -> None:
    log = DecisionLog()
    log.take(made.step(1, 6))
    log.take(made.step(2, 7, mode="mixed"))
    assert runs(log) == [("PLAIN+MIXED", 1, 2, 2)]


def test_another_reason_is_another_run() -> None:
    log = DecisionLog()
    log.take(made.step(1, 6))
    log.take(made.step(2, 3, spec=False, reason="memory"))
    assert [e.reason for e in log.entries if isinstance(e, Run)] == ["above_threshold", "memory"]


def test_notes_stand_between_runs_and_part_them() -> None:
    log = DecisionLog()
    log.take(made.step(1, 3))
    log.note("knob", "threshold 4 → 6", 2)
    log.take(made.step(2, 3))
    assert [type(entry) for entry in log.entries] == [Run, Note, Run]
    assert len({entry.number for entry in log.entries}) == 3


def test_a_clock_that_went_back_gives_no_negative_time() -> None:
    """B101."""
    log = DecisionLog()
    log.take(made.step(1, 3, t=made.T0))
    log.take(made.step(2, 3, t=made.T0 - 5))
    run = log.entries[0]
    assert isinstance(run, Run)
    assert run.seconds == 0.0


def test_the_log_is_bounded() -> None:
    """B104."""
    log = DecisionLog()
    for number in range(2 * KEPT):
        log.take(made.step(number, 3 if number % 2 else 9))
    assert len(log.entries) == KEPT
    assert log.steps == 2 * KEPT
