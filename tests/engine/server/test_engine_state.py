"""When a server calls itself healthy."""

from __future__ import annotations

import pytest

from engine.ipc import Ready
from engine.server.engine_state import EngineState, Phase


def ready_state() -> EngineState:
    state = EngineState("t", frozen_s=5.0, stage_limit_s=120.0)
    state.now_ready(Ready(boot_id="b", max_model_len=8, vocab_size=8, model_name="m", warnings=["slow"]))
    return state


def test_ready() -> None:
    status, body = ready_state().report()
    assert (status, body["status"], body["model"], body["warnings"]) == (200, "ready", "m", ["slow"])


@pytest.mark.parametrize(
    ("phase", "word"),
    [
        ("starting", "loading"),
        ("restarting", "restarting"),
        ("stopping", "stopping"),
        ("failed", "failed"),
    ],
)
def test_every_other_phase_is_unhealthy(phase: Phase, word: str) -> None:
    """B80."""
    state = ready_state()
    state.move(phase, "because")
    status, body = state.report()
    assert (status, body["status"], body["detail"], body["model"]) == (503, word, "because", None)


def test_silence_is_stuck() -> None:
    """B80."""
    state = ready_state()
    state.last_beat -= 5.1
    status, body = state.report()
    assert (status, body["status"]) == (503, "stuck")
    assert "no heartbeat" in body["detail"]


def test_a_long_stage_is_busy_and_an_endless_one_is_stuck() -> None:
    """B80: a long prefill stays healthy; idling for hours does, too."""
    state = ready_state()
    state.stage, state.stage_s = "run", 60.0
    assert state.report()[0] == 200
    state.stage_s = 121.0
    status, body = state.report()
    assert (status, body["status"]) == (503, "stuck")
    assert "'run'" in body["detail"]
    state.stage, state.stage_s = "idle", 1e6
    assert state.report()[0] == 200
