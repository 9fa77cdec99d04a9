"""Whether it pays, in words."""

from __future__ import annotations

import pytest

from probes.ci.near_ties import LIMITS, limit_for, rule_text
from workbench.demo.verdict import judge, undecided

OFF = {1: 100.0, 2: 100.0, 4: 100.0, 8: 100.0}


@pytest.mark.parametrize(
    ("on", "threshold", "pays_up_to", "words"),
    [
        (
            {1: 160.0, 2: 140.0, 4: 120.0, 8: 80.0},
            4,
            4,
            "speculation pays here at up to 4 clients: on is 1.60x off at ",
        ),
        ({1: 160.0, 2: 140.0, 4: 120.0, 8: 80.0}, 4, 4, "0.80x at 8; threshold 4 fits"),
        ({1: 160.0, 2: 140.0, 4: 120.0, 8: 80.0}, 2, 4, "try `specwb serve threshold=4` (it is 2)"),
        ({1: 160.0, 2: 90.0, 4: 80.0, 8: 80.0}, 4, 1, "up to 1 client: "),
        ({1: 160.0, 2: 90.0, 4: 80.0, 8: 80.0}, 4, 1, "try `specwb serve threshold=1` (it is 4)"),
        ({1: 160.0, 2: 150.0, 4: 140.0, 8: 130.0}, 9, 8, "threshold 9 fits"),
        (
            {1: 90.0, 2: 80.0},
            4,
            None,
            "speculation does not pay on this machine: on is 0.90x off at 1 client, 0.80x at 2",
        ),
        ({1: 104.0}, 4, None, "speculation does not pay on this machine"),
        ({1: 90.0, 2: 150.0, 4: 80.0}, 4, None, "no clear answer, speculation pays at 2 clients and not at 1"),
        ({}, 4, None, "too few steps to tell"),
    ],
)
def test_verdict(on: dict[int, float], threshold: int, pays_up_to: int | None, words: str) -> None:
    verdict = judge(OFF, on, threshold)
    assert verdict.pays_up_to == pays_up_to
    assert words in verdict.text


def test_the_advice_can_be_followed_where_the_engine_has_ended_and_where_it_goes_on() -> None:
    on = {1: 160.0, 2: 90.0}
    assert "try `specwb serve threshold=1`" in judge(OFF, on, 4).text
    assert "try `specwb set demo-7 threshold=1`" in judge(OFF, on, 4, "specwb set demo-7").text
    assert "`specwb serve --dtype float32 threshold=0` keeps it off" in (
        judge(OFF, {1: 90.0}, 4, "specwb serve --dtype float32").text
    )


def test_a_disturbed_run_decides_nothing() -> None:
    verdict = undecided({1: 1.6}, "run it again")
    assert (verdict.pays_up_to, verdict.ratios) == (None, {1: 1.6})
    assert verdict.text == "none, as this run was disturbed; run it again"


def test_near_tie_limits_are_one_table_and_said() -> None:
    assert LIMITS == {"float64": 1e-9, "float32": 1e-3, "float16": 0.02, "bfloat16": 0.5}
    assert limit_for("int3") == LIMITS["float32"]
    assert "less than 0.5 apart in log probability (bfloat16)" in rule_text("bfloat16")
