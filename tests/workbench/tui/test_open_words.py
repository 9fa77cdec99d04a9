"""B99: what a newer engine calls a mode or a level is shown as that word, in a colour that there is."""

from __future__ import annotations

from probes.events import Event
from tests.workbench import made_events as made
from workbench.cli.tail import event_text
from workbench.tui.line_panel import ROLES, Line
from workbench.tui.session_state import SessionState
from workbench.tui.status_lines import status_lines
from workbench.tui.step_detail import step_lines
from workbench.tui.step_table import row_words

STEP = made.step(1, mode="treeless", reason="by_cost", reason_detail="cheaper")


def state_after(*events: Event) -> SessionState:
    state = SessionState()
    for event in (made.hello(), *events):
        state.apply(event, 0.0)
    return state


def words_of(lines: list[Line]) -> str:
    for line in lines:
        for _, role in line:
            assert not role or role.removeprefix("badge:") in ROLES, role
    return "\n".join("".join(text for text, _ in line) for line in lines)


def test_a_mode_in_the_table_the_detail_and_the_status() -> None:
    assert "treeless" in words_of([row_words(STEP, 120, selected=False)])
    assert "TREELESS" in words_of(list(step_lines(STEP, 100)))
    text = words_of(status_lines(state_after(STEP), "demo", 0.0, 120))
    assert "TREELESS" in text
    assert "by_cost: cheaper" in text


def test_a_level_in_the_notes() -> None:
    state = state_after(made.alert("the disk is on fire", level="fatal"))
    assert "FATAL the disk is on fire" in words_of(status_lines(state, "demo", 0.0, 120))


def test_words_of_a_line_of_tail() -> None:
    assert "TREELESS" in event_text(STEP)
    assert "alert FATAL" in event_text(made.alert(level="fatal"))
