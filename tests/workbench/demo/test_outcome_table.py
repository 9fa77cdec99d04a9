"""The table at the demo's end."""

from __future__ import annotations

import pytest

from probes.ci.comparison import Tally
from tests.workbench import made_events as made
from workbench.demo.outcome import ModeOutcome, Outcome
from workbench.demo.outcome_table import outcome_lines
from workbench.demo.step_sums import StepSums


def outcome() -> Outcome:
    modes = []
    for name in ("off", "on", "auto"):
        load = StepSums()
        for number in range(1, 7):
            load.add(made.step(number, 8, spec=name == "on"), 100_000.0)
        modes.append(ModeOutcome(name, load, Tally(outputs=26, tokens=1248, differences=[]), StepSums()))
    return Outcome("demo", {"dtype": "float32"}, {}, {"threshold": 4}, [1, 2, 4, 8, 4, 2, 1], 48, modes)


@pytest.mark.parametrize("width", [80, 120, None])
def test_nothing_in_the_table_is_cut_at_80_columns(width: int | None) -> None:
    lines = outcome_lines(outcome(), width)
    table = lines[: lines.index(next(line for line in lines if line.startswith("tok/s at N")))]
    text = "\n".join(table)
    assert max(map(len, table)) <= (width or 160)
    assert "…" not in text
    for word in ("accept", "length", "switches", "slots", "lost", "outputs", "identical", "near-ties", "excused"):
        assert word in text.split()
    assert "0/1248" in text


def test_an_early_end_says_what_is_missing_and_judges_nothing() -> None:
    found = outcome()
    found.modes, found.missing = found.modes[:1], ["on", "auto"]
    lines = outcome_lines(found, 80)
    assert "ended early: nothing was found out about spec=on, spec=auto" in lines
    assert not any(line.startswith("verdict") for line in lines)
    found.modes, found.missing = [], ["off", "on", "auto"]
    assert outcome_lines(found, 80) == ["", "ended early: nothing was found out about spec=off, spec=on, spec=auto"]


def test_knobs_that_somebody_else_turned_are_told() -> None:
    found = outcome()
    found.disturbances.append("ann set spec=off at step 40")
    text = "\n".join(outcome_lines(found, None))
    assert "DISTURBED: ann set spec=off at step 40; the figures are not those of the settings" in text
