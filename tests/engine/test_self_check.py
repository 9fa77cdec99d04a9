"""The run right after loading: it warms up and judges the draft, and leaves no trace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.event_sink import MemorySink
from engine.llm import LLM
from engine.self_check import self_check
from engine.step_plan import StepPlan
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


@pytest.mark.parametrize("worker", ["host", "device"])
def test_where_kernels_are_compiled_a_step_of_every_size_has_run(monkeypatch: pytest.MonkeyPatch, worker: str) -> None:
    """A short chunk, a whole step's tokens, decodes alone and beside prompts; and it, too, leaves no trace."""
    llm, sink = eagle_engine({**STORY, "spec": "auto"}, worker=worker, prefill_chunk=64, max_running=4, kv_tokens=512)
    core = llm.core
    monkeypatch.setattr(type(core.worker), "compiles", True)
    planned: list[tuple[int, tuple[int, ...]]] = []
    launch = core.worker.launch

    def watched(plan: StepPlan, *rest: Any) -> Any:
        planned.append((len(plan.decodes), tuple(chunk.length for chunk in plan.prefills)))
        return launch(plan, *rest)

    monkeypatch.setattr(core.worker, "launch", watched)
    assert self_check(llm.assembly).accept_length is not None
    chunks = [lengths for _, lengths in planned]
    assert any(8 in lengths for lengths in chunks)
    assert max(sum(lengths) for lengths in chunks) == 64
    assert any(decodes and lengths for decodes, lengths in planned)
    assert [event for event in sink.events if not isinstance(event, HeartbeatEvent)] == []
    assert (core.ledger.pages_used, core.has_work, core.step_number) == (0, False, 0)


def test_where_nothing_is_compiled_only_the_fixed_prompt_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    llm = plain_engine()
    added: list[str] = []
    add = llm.core.add

    def watched(request_id: str, *rest: Any) -> Any:
        added.append(request_id)
        return add(request_id, *rest)

    monkeypatch.setattr(llm.core, "add", watched)
    self_check(llm.assembly)
    assert added == ["self-check"]
