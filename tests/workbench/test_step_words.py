"""Words about steps and knobs that the CLI and the screen share."""

from __future__ import annotations

from probes.events import StepShapes
from tests.workbench import made_events as made
from workbench.step_words import gpu_text, knob_text, padding, reason_text


def test_a_knob_change_in_words() -> None:
    change = made.knob_change(7, {"threshold": 4, "spec": "auto"}, {"threshold": 2, "spec": "auto"})
    assert knob_text(change) == "threshold 4 → 2"
    passing = made.knob_change(
        7, {"threshold": 4}, {"threshold": 2}, t=100.0, revert_at=1000.0, back_to={"threshold": 4}
    )
    assert knob_text(passing) == "threshold 4 → 2, back to threshold 4 in 15 min"
    assert knob_text(made.knob_change(7, {"threshold": 2}, {"threshold": 2})) == "threshold stays 2"
    moved = made.knob_change(7, {"threshold": 2}, {"threshold": 2}, t=100.0, revert_at=190.0, back_to={"threshold": 4})
    assert knob_text(moved) == "threshold stays 2, back to threshold 4 in 90 s"


def test_the_gpus_time_is_said_where_there_is_one() -> None:
    assert gpu_text(made.step(1)) == ""
    assert gpu_text(made.gpu_step(1)) == "gpu 5.8 ms, idle 1.2%"
    assert gpu_text(made.gpu_step(1, round_us=0)) == "gpu 5.8 ms", "there was no work before"


def test_padding_is_the_buckets_rows_beyond_the_batch() -> None:
    assert padding(made.step(1)) is None
    assert padding(made.gpu_step(1, 10)) == (6, 16)
    assert padding(made.gpu_step(1, 16)) == (0, 16)
    shapes = StepShapes(padded_bucket=[8, 4])
    assert padding(made.gpu_step(1, 9, shapes=shapes, widths={"4": 7, "1": 2})) == (1, 8), "of the wide rows"


def test_a_missed_graph_leads_the_reason() -> None:
    assert reason_text(made.gpu_step(1, graph_hit=False)).startswith("GRAPH MISS verify/16x4 threshold: ")
    assert "MISS" not in reason_text(made.gpu_step(1))
    assert "MISS" not in reason_text(made.step(1))
