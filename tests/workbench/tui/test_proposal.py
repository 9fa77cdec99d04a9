"""What a person is asked before a knob changes."""

from __future__ import annotations

import pytest

from probes.subscriber import Restart
from tests.workbench import made_events as made
from workbench.tui.proposal import NoProposal, propose, propose_spec, propose_threshold, propose_undo
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


def test_several_knobs_are_one_proposal_with_the_words_of_each() -> None:
    proposal = propose(state(), {"steps": 3, "draft_tokens": 12, "draft_sync": "sticky", "topk": 4})
    assert proposal.title == "steps 2 → 3, draft_tokens 16 → 12, draft_sync lazy → sticky"
    words = " ".join(proposal.consequences)
    assert "costs 12 tokens a request and gives 1 to 4 of them" in words
    assert "stays plain until it ends" in words
    assert "refuse" not in words


def test_what_breaks_a_rule_is_said_beforehand() -> None:
    (words,) = propose(state(), {"topk": 1}).consequences
    assert words.startswith("The engine will refuse this: topk=1 is a chain, so draft_tokens must be steps + 1 = 3")


def test_times_go_round_and_say_what_goes_back() -> None:
    proposal = propose(state(), {"threshold": 8})
    words = [proposal.duration_words]
    for _ in range(4):
        proposal = proposal.with_next_duration()
        words.append(proposal.duration_words)
    assert words[1] == "For 5 min; then the engine sets threshold to 4 by itself."
    assert words[3].startswith("For 1 h;")
    assert words[4] == words[0]


def test_undo_expects_what_the_change_left() -> None:
    known = state()
    change = made.knob_change(5, {"threshold": 4, "spec": "auto"}, {"threshold": 6, "spec": "off"})
    known.apply(change, 0.0)
    proposal = propose_undo(known, change)
    assert (proposal.old, proposal.new) == ({"threshold": 6, "spec": "off"}, {"threshold": 4, "spec": "auto"})
    assert proposal.why == "undo of the change at step 5"


def test_no_undo_across_a_restart() -> None:
    known = state()
    change = made.knob_change(5, {"threshold": 4}, {"threshold": 6})
    known.apply(change, 0.0)
    known.apply(Restart(made.BOOT, "c0ffee00"), 0.0)
    known.apply(made.hello(boot_id="c0ffee00", knobs=made.knobs(threshold=6)), 0.0)
    with pytest.raises(NoProposal, match="before the engine restarted"):
        propose_undo(known, change)
