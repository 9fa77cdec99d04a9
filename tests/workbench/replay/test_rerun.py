"""A recorded session of a real engine runs again on another: the same tokens, or the first one that differs."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
import pytest

from engine.rerun import RerunError, RerunResult, config_of, rerun
from probes.events import Event, HelloEvent, KnobEvent, RequestEvent, StepEvent
from probes.session_script import Arrival, SessionScript
from tests.workbench.replay.live_session import engine, played, record
from workbench.recording.reader import Recording
from workbench.replay.session_scripts import session_script

SCHEDULERS = pytest.mark.parametrize("scheduler", ["sync", "overlap"])


@cache
def session(scheduler: str) -> tuple[HelloEvent, list[Event]]:
    return played(scheduler)


def script_of(path: Path) -> SessionScript:
    with Recording.open(path) as recording:
        return session_script(recording, path.name)


def run_again(script: SessionScript, scheduler: str) -> tuple[RerunResult, list[Event]]:
    """On a new engine; what it said of its steps too."""
    llm, sink = engine(scheduler)
    assert config_of(script).knobs == llm.core.knobs.knobs
    return rerun(script, llm.core), sink.events


def plans(events: list[Event]) -> list[object]:
    """What ran in which step."""
    steps = [event for event in events if isinstance(event, StepEvent)]
    return [(e.step, e.mode, e.widths, e.prefill_tokens, e.spec_info, e.correct_drafts, e.overrun) for e in steps]


def ended(events: list[Event]) -> dict[str, RequestEvent]:
    found = [event for event in events if isinstance(event, RequestEvent)]
    return {event.request_id: event for event in found if event.phase in ("finished", "aborted")}


@SCHEDULERS
def test_a_session_runs_again_identically(scheduler: str, tmp_path: Path) -> None:
    """Switches, an abort, a stop string, sampled, seeded and greedy requests, and a pause."""
    hello, events = session(scheduler)
    recorded = ended(events)
    assert [event.finish_reason for event in recorded.values()].count("abort") == 1
    assert recorded["stops"].finish_reason == "stop"
    assert {event.mode for event in events if isinstance(event, StepEvent)} >= {"spec", "plain"}
    assert sum(isinstance(event, KnobEvent) for event in events) == 4
    script = script_of(record(tmp_path / "x.mcap", hello, events))
    assert (script.skipped, script.notes) == (0, [])
    result, again = run_again(script, scheduler)
    assert result.is_identical
    assert plans(again) == plans(events)
    assert (result.requests, result.differing) == (5, 0)
    assert result.tokens == sum(event.output_tokens for event in recorded.values())
    assert result.steps == sum(isinstance(event, StepEvent) for event in events)


@SCHEDULERS
def test_a_tampered_token_is_the_first_difference(scheduler: str, tmp_path: Path) -> None:
    hello, events = session(scheduler)
    changed: list[Event] = []
    for event in events:
        if isinstance(event, RequestEvent) and event.request_id in ("greedy", "late") and event.output_token_ids:
            ids = list(event.output_token_ids)
            ids[5] += 1
            event = msgspec.structs.replace(event, output_token_ids=ids)
        changed.append(event)
    result, _ = run_again(script_of(record(tmp_path / "x.mcap", hello, changed)), scheduler)
    first = result.first_difference
    assert first is not None
    assert (result.is_identical, result.differing) == (False, 2)
    assert (first.request_id, first.position) == ("greedy", 5)
    assert first.recorded is not None
    assert first.got == first.recorded - 1
    rows = [event for event in events if isinstance(event, StepEvent) and event.step == first.step]
    assert rows
    assert f"request greedy, position 5, step {first.step}: recorded token {first.recorded}, got" in first.text


def test_an_output_that_was_longer_or_shorter_differs_at_its_end(tmp_path: Path) -> None:
    hello, events = session("sync")
    for cut, recorded_ends in ((-1, True), (None, False)):
        changed = [
            msgspec.structs.replace(event, output_token_ids=[*event.output_token_ids[:cut], *([] if cut else [9])])
            if isinstance(event, RequestEvent) and event.request_id == "greedy" and event.output_token_ids
            else event
            for event in events
        ]
        result, _ = run_again(script_of(record(tmp_path / f"{recorded_ends}.mcap", hello, changed)), "sync")
        first = result.first_difference
        assert first is not None
        assert (first.position, first.recorded is None) == (24 if cut else 25, recorded_ends)
        assert (first.got is None) != recorded_ends


def test_knob_changes_come_before_the_same_steps(tmp_path: Path) -> None:
    hello, events = session("sync")
    path = record(tmp_path / "x.mcap", hello, [event for event in events if not isinstance(event, KnobEvent)])
    _, without = run_again(script_of(path), "sync")
    assert plans(without) != plans(events)


def test_a_request_that_cannot_run_here_is_named() -> None:
    llm, _ = engine("sync")
    arrival = Arrival(
        step=0, landed=0, request_id="r", prompt_token_ids=[10**6], sampling={}, seed=1, output_token_ids=[1]
    )
    script = SessionScript(
        source="x", model={}, draft=None, config={}, knobs={}, step=0, actions=[arrival], skipped=0, notes=[]
    )
    with pytest.raises(RerunError, match=r"request r cannot run here: .*outside the vocabulary"):
        rerun(script, llm.core)


def test_the_engine_is_built_as_the_hello_says() -> None:
    hello, _ = session("overlap")
    script = SessionScript(
        source="x",
        model=hello.model,
        draft=hello.draft,
        config={**hello.config, "dtype": "auto", "threads": 0, "measured_threshold": True},
        knobs=hello.knobs,
        step=0,
        actions=[],
        skipped=0,
        notes=[],
    )
    config = config_of(script, model="elsewhere")
    assert (config.dtype, config.threads, config.scheduler) == ("float64", hello.model["threads"], "overlap")
    assert (config.model, config.draft_model, config.page_size) == ("elsewhere", "tiny", 16)
    assert msgspec.structs.asdict(config.knobs) == hello.knobs
    assert not config.measured_threshold
    broken = msgspec.structs.replace(script, config={"scheduler": "later"})
    with pytest.raises(RerunError, match="not of this version"):
        config_of(broken)
