"""What of a recording can be run again, and in which words the rest is said."""

from __future__ import annotations

from typing import Any

import pytest

from probes.events import RequestEvent
from probes.session_script import Arrival, Departure, KnobChange, SessionScript
from probes.subscriber import Gap, Malformed, Received, Restart
from tests.workbench import made_events as made
from tests.workbench.replay.memory_session import MemorySession
from workbench.recording.recording_error import RecordingError
from workbench.replay.session_scripts import session_script


def phase(name: str, phase: str, step: int, **changes: Any) -> RequestEvent:
    return RequestEvent(boot_id=made.BOOT, step=step, t=made.T0, request_id=name, phase=phase, **changes)


def arrived(name: str, step: int) -> RequestEvent:
    return phase(name, "arrived", step, prompt_token_ids=[1, 2], sampling={"temperature": 0.0}, seed=3)


def finished(name: str, step: int) -> RequestEvent:
    return phase(name, "finished", step, output_token_ids=[4, 5])


def script_of(*items: Received, missing: str = "") -> SessionScript:
    session = MemorySession([(made.T0 + number, item) for number, item in enumerate(items)], missing)
    return session_script(session, "x.mcap")


def test_requests_changes_and_aborts_in_order() -> None:
    script = script_of(
        made.hello(step=10),
        arrived("a", 10),
        made.step(11, 1),
        made.knob_change(12, {"threshold": 4}, {"threshold": 1}),
        made.knob_change(12, {"threshold": 1}, {"threshold": 1}),
        arrived("b", 12),
        finished("a", 12),
        made.step(12, 1),
        phase("b", "aborted", 13, output_token_ids=[6]),
    )
    assert (script.step, script.skipped, script.notes) == (10, 0, [])
    ask: dict[str, Any] = {"prompt_token_ids": [1, 2], "sampling": {"temperature": 0.0}, "seed": 3}
    assert script.actions == [
        Arrival(step=10, landed=10, request_id="a", output_token_ids=[4, 5], **ask),
        KnobChange(step=11, landed=11, new={"threshold": 1}),
        Arrival(step=12, landed=11, request_id="b", output_token_ids=[6], **ask),
        Departure(step=13, landed=12, request_id="b"),
    ]


def test_what_is_skipped_or_not_compared_is_counted_in_words() -> None:
    script = script_of(
        made.hello(),
        finished("before", 1),
        arrived("a", 1),
        finished("a", 4),
        arrived("fails", 4),
        phase("fails", "aborted", 6, output_token_ids=[7], error="step 6 failed"),
        arrived("endless", 6),
        missing="cut off",
    )
    assert script.skipped == 1
    said = " / ".join(script.notes)
    assert "missing from the recording: cut off" in said
    assert "1 request skipped, whose beginning is not in the recording" in said
    assert "1 request had not ended when the recording did: run along, not compared" in said
    assert "1 request failed in the recorded engine" in said
    assert script.actions[2] == Departure(step=5, landed=0, request_id="fails")
    endless = script.actions[-1]
    assert isinstance(endless, Arrival)
    assert endless.output_token_ids is None


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (Gap("request", 3, 5, recovered=False), "3 request events (3 to 5)"),
        (Gap("knob", 3, 3, recovered=False), "1 knob events (3 to 3)"),
        (Malformed("the chunk at byte 9 is damaged", 0), "the chunk at byte 9 is damaged"),
    ],
)
def test_a_loss_ends_what_is_run_again(loss: Received, words: str) -> None:
    script = script_of(made.hello(), arrived("a", 0), finished("a", 3), loss, arrived("b", 3), finished("b", 5))
    assert [action.request_id for action in script.actions if isinstance(action, Arrival)] == ["a"]
    assert script.notes == [f"only what came before a loss is run again: {words}"]


@pytest.mark.parametrize("harmless", [Gap("request", 3, 5, recovered=True), Gap("step", 3, 5, recovered=False)])
def test_what_came_late_and_lost_steps_end_nothing(harmless: Received) -> None:
    script = script_of(made.hello(), harmless, arrived("a", 0), finished("a", 3))
    assert script.notes == []


def test_of_several_boots_the_first_with_requests() -> None:
    script = script_of(
        made.hello(),
        Restart(made.BOOT, "b2"),
        made.hello(boot_id="b2", step=0, knobs=made.knobs(threshold=9)),
        arrived("a", 0),
        finished("a", 3),
        Restart("b2", "b3"),
    )
    assert script.knobs["threshold"] == 9
    assert script.notes == ["the recording has 3 boots of the engine; number 2 is run again"]


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "no requests in it"),
        ([phase("a", "arrived", 0), phase("a", "finished", 3)], "no prompts in it"),
        ([arrived("a", 0)], "no request that both begins and ends in it"),
        ([finished("a", 3)], "no prompts in it"),
    ],
)
def test_nothing_to_run_again(items: list[Received], words: str) -> None:
    with pytest.raises(RecordingError, match=words):
        script_of(made.hello(), *items)
    with pytest.raises(RecordingError, match="does not say how its engine was started"):
        script_of(arrived("a", 0), finished("a", 3))
