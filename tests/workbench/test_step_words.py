"""Words about steps and knobs that the CLI and the screen share."""

from __future__ import annotations

from tests.workbench import made_events as made
from workbench.step_words import knob_text


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
