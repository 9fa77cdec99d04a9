"""What a person is asked before a knob changes."""

from __future__ import annotations

from tests.workbench import made_events as made
from workbench.tui.proposal import propose_spec, propose_threshold
from workbench.tui.session_state import SessionState


def state(**hello: object) -> SessionState:
    state = SessionState()
    state.apply(made.hello(**hello), 0.0)
    state.apply(made.step(1, 7), 0.0)
    return state


def test_off_says_old_new_and_what_happens() -> None:
    proposal = propose_spec(state(), "off")
    assert proposal.title == "spec auto → off"
    assert (proposal.old, proposal.new) == ({"spec": "auto"}, {"spec": "off"})
    assert "plainly" in proposal.consequences[0]
    assert "half precision" in proposal.consequences[-1]


def test_auto_says_what_it_means_for_the_load_of_now() -> None:
    words = " ".join(propose_spec(state(knobs=made.knobs(spec="off")), "auto").consequences)
    assert "at most 4 requests" in words
    assert "Now 7 decode: plain." in words


def test_threshold_stays_within_its_limits() -> None:
    low = propose_threshold(state(knobs=made.knobs(threshold=0)), -1)
    assert low.new == {"threshold": 0}
    assert not low.is_change


def test_threshold_has_no_effect_while_spec_is_by_hand() -> None:
    proposal = propose_threshold(state(knobs=made.knobs(spec="on")), 5)
    assert proposal.consequences == ("No effect while spec=on; it decides once spec is auto.",)
