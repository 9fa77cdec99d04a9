"""The status in words."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from probes.subscriber import Gap
from tests.workbench import made_events as made
from workbench.tui.feed import FeedItem, Gone
from workbench.tui.line_panel import Line
from workbench.tui.session_state import SessionState
from workbench.tui.status_lines import accept_text, status_lines
from workbench.tui.windows import Acceptance


def status(*items: FeedItem, width: int = 80, at: float = 1000.0) -> list[str]:
    state = SessionState()
    for item in items:
        state.apply(item, 1000.0)
    return [words(line) for line in status_lines(state, "demo", at, width)]


def words(line: Line) -> str:
    return "".join(text for text, _ in line)


def test_accept_text() -> None:
    """B61: the three forms."""
    assert accept_text(Acceptance(2.414, 2.414, 0.0)) == "2.41"
    assert accept_text(Acceptance(None, 2.414, 12.3)) == "n/a (last 2.41, 12 s ago)"
    assert accept_text(Acceptance(None, None, 0.0)) == "n/a"


def test_draft_loaded_but_off_says_so_and_why() -> None:
    """B66, also on the narrowest screen."""
    off = status(made.hello(knobs=made.knobs(spec="off")), made.step(1, 2, spec=False))
    assert "draft loaded, speculation off (spec=off)" in off[1]
    zero = status(made.hello(knobs=made.knobs(threshold=0)), made.step(1, 2, spec=False))
    assert "draft loaded, speculation off (threshold=0)" in zero[1]
    load = status(made.hello(), made.step(1, 9))
    assert "draft loaded, plain now (load)" in load[1]
    none = status(made.hello(draft=None), made.step(1, 2, spec=False))
    assert "no draft loaded: cannot speculate" in none[1]


def test_near_ties_are_said_for_half_precision_only() -> None:
    assert "bfloat16: text with spec on and off may differ at near-ties" in status(made.hello())[3]
    exact = made.hello(model={"name": "m", "dtype": "float32"})
    assert "near-ties" not in "".join(status(exact))


def test_simulated_is_said() -> None:
    assert "SIMULATED" in status(made.hello(simulated=True))[3]
    assert "SIMULATED" in status(made.hello(), made.step(1, simulated=True))[3]


def test_loss_is_in_words() -> None:
    """B88: the count stays, the word GAP while it is fresh."""
    fresh = status(made.hello(), Gap("step", 1, 7, recovered=False))[0]
    assert "lost 7" in fresh
    assert "GAP" in fresh
    later = status(made.hello(), Gap("step", 1, 7, recovered=False), at=1060.0)[0]
    assert "lost 7" in later
    assert "GAP" not in later


def test_stale_and_gone_show_no_live_numbers() -> None:
    steps: list[FeedItem] = [made.hello(), *(made.step(number) for number in range(20))]
    stale = status(*steps, at=1004.0)
    assert "STALE nothing heard for 4 s" in stale[0]
    assert stale[1].startswith(" - ")
    assert "- tok/s" in stale[2]
    gone = status(*steps, Gone("process 7 has ended"))
    assert "GONE process 7 has ended" in gone[0]


def test_before_anything_came() -> None:
    lines = status()
    assert "WAITING" in lines[0]
    assert "no step since this screen opened" in lines[4]


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_no_line_but_the_decision_is_wider_than_the_screen(width: int) -> None:
    """B114: a CJK model name is measured in cells."""
    model = {"name": "日本語の長い長い長い長い長い長い長い長いモデル名", "dtype": "bfloat16", "device": "cpu"}
    for items in ([made.hello(model=model)], [made.hello(model=model), made.step(1, 9)]):
        for line in status(*items, width=width)[:4]:
            assert cell_len(line) <= width, line
