"""The run right after loading: it warms up and judges the draft, and leaves no trace."""

from __future__ import annotations

from dataclasses import replace

from engine.event_sink import MemorySink
from engine.llm import LLM
from engine.self_check import self_check
from probes.events import HeartbeatEvent
from tests.engine.tiny import (
    GREEDY,
    STORY,
    eagle_engine,
    plain_engine,
    step_events,
    tiny_config,
    tiny_draft,
    tiny_target,
)


def test_a_draft_that_is_never_accepted_is_a_warning_and_the_run_leaves_no_trace() -> None:
    """B22: a head that is loaded wrongly does not crash; the start says that it is of no use."""
    llm, sink = eagle_engine({**STORY, "spec": "auto"})
    check = self_check(llm.assembly)
    assert check.accept_length is not None
    assert check.accept_length < 1.1
    [warning] = check.warnings
    assert "almost never accepted" in warning
    assert [event for event in sink.events if not isinstance(event, HeartbeatEvent)] == []
    core = llm.core
    assert (core.step_number, core.knobs.knob_epoch, core.knobs.knobs.spec) == (0, 0, "auto")
    assert (core.ledger.pages_used, core.has_work) == (0, False)
    llm.generate([[1, 2, 3]], GREEDY)
    assert step_events(sink)[0].step == 1


def test_without_a_draft_there_is_nothing_to_judge() -> None:
    check = self_check(plain_engine().assembly)
    assert (check.accept_length, check.warnings) == (None, [])


def test_a_model_without_a_chat_template_is_asked_in_plain_text() -> None:
    target = replace(tiny_target(), chat_template=None)
    llm = LLM(target, draft=tiny_draft(), sink=MemorySink(), config=tiny_config())
    assert self_check(llm.assembly).accept_length is not None


def test_prescribed_acceptance_says_nothing_of_the_draft() -> None:
    llm, _ = eagle_engine({**STORY, "spec": "auto"}, simulate_accept=1.0)
    check = self_check(llm.assembly)
    assert (check.accept_length, check.warnings) == (None, [])
