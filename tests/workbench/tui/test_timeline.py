"""The ring of steps."""

from __future__ import annotations

from probes.events import StepEvent
from tests.workbench import made_events
from workbench.tui.timeline import Mark, Timeline


def test_rows_keep_their_numbers_while_old_ones_go() -> None:
    timeline = Timeline(capacity=80)
    for number in range(1000):
        timeline.append(made_events.step(number))
        assert len(timeline) <= 90
    assert timeline.end == 1000
    assert timeline.first == 1000 - len(timeline)
    newest = timeline.row(999)
    assert isinstance(newest, StepEvent)
    assert newest.step == 999
    assert timeline.row(timeline.first - 1) is None
    assert timeline.row(1000) is None


def test_a_step_comes_back_as_it_went_in() -> None:
    timeline = Timeline()
    step = made_events.step(7)
    timeline.append(step)
    timeline.append(Mark("gap", "lost 3"))
    assert list(timeline) == [step, Mark("gap", "lost 3")]


def test_a_snapshot_stays() -> None:
    timeline = Timeline(capacity=8)
    for number in range(8):
        timeline.append(made_events.step(number))
    snapshot = timeline.snapshot()
    for number in range(8, 100):
        timeline.append(made_events.step(number))
    assert (snapshot.first, snapshot.end) == (0, 8)
    oldest = snapshot.row(0)
    assert isinstance(oldest, StepEvent)
    assert oldest.step == 0
