"""Who verifies a tree in a step, and who decodes one token."""

from __future__ import annotations

import pytest

from engine.request import Request
from engine.sampling_params import SamplingParams
from engine.spec.choice import SpecChoice
from engine.step_plan import drafting, make_plan, widths_of
from engine.stop_conditions import StopConditions

TREES = SpecChoice(True, "spec_on", "", 2, 4, 16)
PLAIN = SpecChoice(False, "spec_off", "")


def decoding(name: str, left: int, *, stays_plain: bool = False) -> Request:
    """A request of 3 prompt tokens that may emit ``left`` more, the first one is out."""
    params, stops = SamplingParams(max_tokens=left + 1), StopConditions(frozenset())
    return Request(name, 3, [1, 2, 3, 4], params, 0, left + 1, stops, 0.0, committed=3, stays_plain=stays_plain)


MANY, LAST, STUCK = decoding("many", 20), decoding("last", 1), decoding("stuck", 20, stays_plain=True)


@pytest.mark.parametrize(
    ("decodes", "even", "widths"),
    [
        ([MANY, LAST, STUCK], False, [16, 1, 1]),
        ([MANY, LAST, STUCK], True, [16, 16, 1]),
        ([LAST, STUCK], True, [1, 1]),  # nobody gains: the step is plain
        ([], True, []),
    ],
)
def test_a_last_token_is_verified_only_beside_others(decodes: list[Request], even: bool, widths: list[int]) -> None:
    assert widths_of(decodes, TREES, even=even) == widths
    assert widths_of(decodes, PLAIN, even=even) == [1] * len(decodes)
    plan = make_plan(7, TREES, decodes, [], even=even)
    assert [row.width for row in plan.decodes] == widths
    assert plan.slots == sum(widths)
    assert drafting(decodes, even=even) == [width > 1 for width in widths]
