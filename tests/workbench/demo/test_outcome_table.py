"""The table at the demo's end."""

from __future__ import annotations

import pytest

from tests.workbench import made_events as made
from probes.ci.comparison import Tally
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
