"""The words of a step filter."""

from __future__ import annotations

import pytest

from tests.workbench import made_events as made
from workbench.tui.step_filter import FilterError, parse_filter


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("mode=spec", True),
        ("mode!=spec", False),
        ("reqs>3", False),
        ("reqs>=3 reqs<=3", True),
        ("reqs==3", True),
        ("acc<2.4", True),
        ("acc=none", False),
        ("acc!=none", True),
        ("ms>43", True),
        ("step>=8", False),
        ("step=7", True),
        ("reason=threshold", True),
        ("reason=memory", False),
        ("reason!=memory", True),
        ("mismatch", False),
        ("requests <=", True),
        ("REQUESTS 4", True),
        ("spec", True),
        ("nonsense", False),
        ("mode=spec reqs>3", False),
    ],
)
def test_words_are_anded(text: str, passes: bool) -> None:
    wanted = parse_filter(text)
    assert wanted is not None
    assert wanted.matches(made.step(7, 3)) is passes


def test_flags_and_missing_values() -> None:
    mismatch, slow, no_accept = parse_filter("mismatch"), parse_filter("ms>0"), parse_filter("acc<9")
    assert mismatch is not None
    assert slow is not None
    assert no_accept is not None
    assert mismatch.matches(made.step(1, 3, slots_written=1))
    assert not slow.matches(made.step(1, 3, cpu_us={}))
    assert not no_accept.matches(made.step(1, 9))  # nothing was verified: no number, so no comparison holds


def test_no_words_are_no_filter() -> None:
    assert parse_filter("   ") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mode=fast", "mode is one of spec, plain, prefill, mixed, not 'fast'"),
        ("mode>spec", "mode is a word"),
        ("tempo>3", "tempo is no field of a step. numbers: step reqs prompt"),
        ("reqs>many", "reqs> needs a number, not 'many'"),
        ("acc<", "acc< needs a number, or none"),
        ("reason=", "reason= needs a code"),
        (">3", "is no field of a step"),
    ],
)
def test_a_wrong_word_is_told_what_is_allowed(text: str, says: str) -> None:
    with pytest.raises(FilterError, match=says.replace("(", r"\(").replace("'", ".")):
        parse_filter(f"reqs>1 {text}")


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("gpu>5.7 gpu<5.8", True),
        ("idle>1 idle<2", True),
        ("pad=6", True),
        ("miss", False),
        ("idle=none", False),
    ],
)
def test_what_a_gpu_engine_adds(text: str, passes: bool) -> None:
    wanted = parse_filter(text)
    assert wanted is not None
    assert wanted.matches(made.gpu_step(7, 10)) is passes


def test_on_a_cpu_the_gpus_numbers_are_missing_not_zero() -> None:
    for text in ("gpu>=0", "idle>=0", "pad>=0", "miss"):
        wanted = parse_filter(text)
        assert wanted is not None
        assert not wanted.matches(made.step(7))


def test_missed_graphs_are_found() -> None:
    wanted = parse_filter("miss")
    assert wanted is not None
    assert wanted.matches(made.gpu_step(7, graph_hit=False))
