"""tail as a program in a pipe, and its lines."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from probes.events import RequestEvent, RequestRow, RowsEvent
from probes.subscriber import Gap, Malformed, Restart
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.made_engine import MadeEngine, stepping
from workbench.cli.tail import event_text, incident, incident_text
from workbench.exit_codes import ExitCode

ROOT = Path(__file__).parents[3]


def tail(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "workbench", "tail", *arguments]
    return subprocess.run(program, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_json_is_one_object_a_line_and_ends_after_the_steps(engine: MadeEngine) -> None:
    with stepping(engine):
        result = tail("made", "--json", "--steps", "20")
    assert result.returncode == 0, result.stderr
    events = [json.loads(line) for line in result.stdout.splitlines()]
    steps = [event["step"] for event in events if event["type"] == "step"]
    assert steps == list(range(steps[0], steps[0] + 20))
    assert events[-1]["accept_length"] == pytest.approx(1 + 4 / 3)


def test_lines_for_people_have_no_escape_codes(engine: MadeEngine) -> None:
    """B110."""
    with stepping(engine):
        result = tail("--steps", "3")
    assert result.returncode == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert len(result.stdout.splitlines()) == 3
    assert "following made" in result.stderr


def test_reader_that_leaves_ends_it_quietly(engine: MadeEngine) -> None:
    with stepping(engine):
        command = f"{sys.executable} -m workbench tail made --json | head -n 2; echo ${{PIPESTATUS[0]}}"
        result = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
        )
    *lines, code = result.stdout.splitlines()
    assert int(code) == ExitCode.BROKEN_PIPE
    assert len(lines) == 2
    assert "Traceback" not in result.stderr
    assert "Broken" not in result.stderr


def test_silence_can_be_an_exit_code(engine: MadeEngine) -> None:
    result = tail("--topic", "alert", "--timeout", "0.3")
    assert result.returncode == ExitCode.UNREACHABLE
    assert "nothing came from made for 0.3 s" in result.stderr


def test_interrupt(engine: MadeEngine) -> None:
    program = [sys.executable, "-m", "workbench", "tail", "made", "--json"]
    with (
        stepping(engine),
        subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(2)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    assert b"Traceback" not in errors


def test_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    row = RequestRow(request_id="r1", width=16, committed=40, emitted=3, correct=2, draft_lag=0)
    ended: dict[str, Any] = {"finish_reason": "stop", "accept_length": 2.41, "prompt_tokens": 12, "output_tokens": 90}
    events = [
        made.step(1),
        made.step(2, 9),
        made.prefill(3),
        made.step(4, 10, slots_written=160, replanned=True),
        made.step(5, 3, cpu_us={}, simulated=True),
        made.knob_change(6, {"threshold": 4}, {"threshold": 2}, why="load test"),
        made.alert(),
        made.heartbeat(1, stage="run", stage_s=12.0),
        made.hello(),
        RequestEvent(boot_id="b", step=7, t=made.T0, request_id="r1", phase="finished", **ended),
        RowsEvent(boot_id="b", step=8, t=made.T0, rows=[row]),
    ]
    incidents: list[Gap | Restart | Malformed] = [
        Gap("step", 5, 9, recovered=False),
        Gap("step", 5, 9, recovered=True),
        Restart("aaaa", "bbbb"),
        Malformed("payload of 3 bytes is not a step event", 3, "step", 7),
    ]
    lines = [*map(event_text, events), *map(incident_text, incidents), *(json.dumps(incident(i)) for i in incidents)]
    golden.check("cli-tail", "\n".join(lines))
    monkeypatch.delenv("TZ")
    time.tzset()
