"""How far outputs are the same, in words."""

from __future__ import annotations

from probes.ci.comparison import Difference, Tally
from workbench.demo.sameness import difference_lines, plain_text, sameness_cell, sameness_text


def tally(*differences: Difference) -> Tally:
    return Tally(outputs=26, tokens=1248, differences=list(differences))


def tie(position: int, prompt: str = "tea") -> Difference:
    return Difference(prompt, position, 1, 2, 0.125, True)


def fault(position: int) -> Difference:
    return Difference("tea", position, 1, 2, 5.0, False)


def test_yes_only_where_nothing_differs() -> None:
    assert sameness_cell(tally()) == "yes"
    assert sameness_cell(tally(tie(1))) == "but for 1 near-tie"
    assert sameness_cell(tally(tie(1), tie(2))) == "but for 2 near-ties"
    assert sameness_cell(tally(tie(1), fault(2))) == "NO"
    assert sameness_cell(Tally()) == "NO", "nothing was compared"


def test_in_a_sentence() -> None:
    assert sameness_text([tally()]) == "outputs identical (in 26 outputs)"
    assert sameness_text([tally(tie(1)), tally(tie(2))]) == "outputs identical but for 2 near-ties (in 52 outputs)"
    assert sameness_text([tally(tie(1), fault(2))]) == (
        "outputs NOT IDENTICAL: 1 differ, near-ties excused: 1 (in 26 outputs)"
    )


def test_three_near_ties_are_shown_and_every_fault() -> None:
    ties = [tie(position) for position in (1, 1, 2, 3, 4, 4, 5)]
    faults = [fault(position) for position in range(10, 15)]
    lines = difference_lines(tally(*ties, *faults))
    assert [line for line in lines if "NOT EXCUSED" in line] == lines[:5]
    assert lines[5].endswith("near-tie, excused (×2)")
    assert len(lines) == 5 + 3 + 1
    assert lines[-1] == "… and 3 more near-ties (in the report: --json)"
    assert len(difference_lines(tally(tie(1), tie(2), tie(3)))) == 3
    assert difference_lines(tally()) == []


def test_where_two_plain_runs_differ_too_speculation_has_no_part_in_it() -> None:
    assert plain_text(tally(), [tally(tie(1))], "bfloat16") is None
    one = plain_text(tally(tie(1)), [tally(tie(1))], "bfloat16")
    assert one is not None
    assert one.startswith(
        "spec=off differs from its own spec=off reference at that place (prompt and position): bfloat16 "
    )
    assert one.endswith("between two plain runs too, so that is batch size and not speculation")
    everywhere = plain_text(tally(tie(1), tie(2)), [tally(tie(1))], "bfloat16")
    assert everywhere is not None
    assert "at each of these 2 places" in everywhere
    some = plain_text(tally(tie(1)), [tally(tie(1, "milk"), tie(2))], "bfloat16")
    assert some is not None
    assert "at 1 of these 3 places" in some
