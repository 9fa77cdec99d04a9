"""The table at the demo's end."""

from __future__ import annotations

import pytest

from probes.ci.comparison import Difference, Tally
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
        load.in_use = 0  # all requests have ended
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
    assert "verdict: none, as this run was disturbed; run it again, and leave the knobs alone meanwhile" in text
    assert "threshold=" not in text


def measured(slow_us: float) -> Outcome:
    """Speculation at 1.6 times the pace; every fifth step takes ``slow_us``."""
    modes = []
    for name, us in (("off", 1600.0), ("on", 1000.0)):
        load = StepSums()
        for number in range(1, 41):
            load.add(made.step(number, 1, spec=False), slow_us if number % 5 == 0 else us)
        modes.append(ModeOutcome(name, load, Tally(outputs=26, tokens=1248), StepSums()))
    return Outcome("demo", {"dtype": "bfloat16"}, {}, {"threshold": 0}, [1], 48, modes, how_to_set="bin/specwb serve")


def test_a_noisy_machine_gets_no_verdict_and_no_advice() -> None:
    text = "\n".join(outcome_lines(measured(50_000.0), None))
    assert "DISTURBED: steps that should take alike differ by " in text
    assert "believe no figure above" in text
    assert "verdict: none, as this run was disturbed; run it again on a quieter machine" in text
    assert "pays here" not in text
    assert "threshold=" not in text
    assert measured(50_000.0).as_json()["pays_up_to"] is None


def test_a_quiet_one_gets_both() -> None:
    text = "\n".join(outcome_lines(measured(1200.0), None))
    assert "DISTURBED" not in text
    assert "try `bin/specwb serve threshold=1` (it is 0)" in text


@pytest.mark.parametrize("width", [80, None])
def test_outputs_that_differ_at_near_ties_are_not_called_identical(width: int | None) -> None:
    """They are excused, and said; the exit code does not change by them."""
    found = outcome()
    ties = [Difference("tea", position, 1, 2, 0.1, True) for position in (3, 5)]
    found.modes[0].compared.differences = ties[:1]
    found.modes[1].compared.differences = ties
    lines = outcome_lines(found, width)
    text = " ".join(" ".join(lines).split())
    assert "outputs identical but for 3 near-ties (in 78 outputs), against a reference made with spec=off" in text
    assert "spec=off differs from its own spec=off reference at 1 of these 2 places (prompt and position): " in text
    assert "yes" in next(line for line in lines if line.startswith("auto")).split()
    for name in ("off", "on"):
        assert "yes" not in next(line for line in lines if line.startswith(name)).split()
    assert max(map(len, lines[: lines.index("", 1)])) <= (width or 160)
    assert found.exit_code == 0


def test_a_difference_that_is_not_excused_is_no() -> None:
    found = outcome()
    found.modes[1].compared.differences = [Difference("tea", 3, 1, 2, 5.0, False)]
    lines = outcome_lines(found, None)
    assert "NO" in next(line for line in lines if line.startswith("on")).split()
    assert any("outputs NOT IDENTICAL: 1 differ, near-ties excused: 0 (in 78 outputs)" in line for line in lines)
    assert found.exit_code == 1
