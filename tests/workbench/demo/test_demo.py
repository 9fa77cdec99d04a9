"""The whole command, with a real engine on the tiny random model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from probes.ci.openai_client import Answer, OpenAiClient
from probes.control import ControlClient
from probes.discovery import EngineRecord, list_records
from probes.subscriber import Subscriber
from workbench.cli.demo import serve_options
from workbench.demo.demonstration import WHO, Demonstration
from workbench.demo.narrator import LineNarrator
from workbench.demo.outcome_table import outcome_lines
from workbench.demo.served_engine import ServedEngine
from workbench.demo.session import TOPICS
from workbench.exit_codes import ExitCode

ROOT = Path(__file__).parents[3]
TINY = ("--model", "tiny-random", "--dtype", "float32", "--threads", "1")
FEW = 8
"""Tokens an answer."""


def demo(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "workbench", "demo", *arguments],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen[str]) -> tuple[str, str]:
    with process:
        try:
            return process.communicate(timeout=120)
        finally:
            process.kill()


@pytest.mark.slow
def test_demo_for_people() -> None:
    """Speculation off, on and by policy: identical, nothing lost; plain lines in a pipe; no engine left behind."""
    process = demo(*TINY, "--tokens", str(FEW))
    out, errors = finished(process)
    assert process.returncode == ExitCode.OK, out + errors
    assert "\x1b" not in out
    assert errors == ""
    assert "preparing weights" in out or "serving tiny-random" in out
    for mode in ("off", "on", "auto"):
        assert f"spec={mode}: " in out
    assert re.search(r"^outputs identical( but for \d+ near-ties?)? \(in \d+ outputs\), against a reference", out, re.M)
    assert "slots lost: 0; slots expected = reserved = written: yes" in out
    assert "verdict: " in out
    assert list_records() == []


def test_demo_as_json() -> None:
    process = demo(*TINY, "--tokens", str(FEW), "--json")
    out, errors = finished(process)
    assert process.returncode == ExitCode.OK, errors
    (line,) = out.splitlines()
    found: dict[str, Any] = json.loads(line)
    assert (found["identical"], found["slots_lost"], found["events_lost"]) == (True, 0, 0)
    assert found["levels"] == [1, 2, 4, 8, 4, 2, 1]
    modes = found["modes"]
    assert list(modes) == ["off", "on", "auto"]
    assert modes["off"]["accept_length"] is None
    assert modes["off"]["switches"] == 0
    assert modes["on"]["accept_length"] >= 1
    assert modes["auto"]["switches"] >= 2, "the ramp goes through the threshold in both directions"
    for mode in modes.values():
        assert mode["outputs_compared"] >= sum(found["levels"])
        assert mode["tokens_compared"] == mode["outputs_compared"] * FEW
        assert mode["steps_miscounted"] == []
    assert "verdict: " in errors, "people still get the table, on stderr"


def test_an_engine_that_cannot_start_shows_its_last_lines() -> None:
    process = demo("--model", "no-such-model")
    _, errors = finished(process)
    assert process.returncode == ExitCode.NO_ENGINE
    assert "the engine ended with exit code" in errors
    assert "| specwb: model 'no-such-model'" in errors


def test_nothing_to_compare_is_a_usage_error() -> None:
    process = demo("--draft-model", "none")
    out, errors = finished(process)
    assert process.returncode == ExitCode.USAGE
    assert out == ""
    assert "leaves nothing to compare" in errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED),
        (signal.SIGTERM, ExitCode.TERMINATED),
        (signal.SIGHUP, ExitCode.HUNG_UP),
    ],
)
def test_a_signal_ends_the_engine_too(number: signal.Signals, code: ExitCode) -> None:
    process = demo(*TINY, "--tokens", "1024")
    with process:
        try:
            assert process.stdout is not None
            assert any(line.startswith("spec=off") for line in process.stdout)
            assert [record.name for record in list_records()] == [f"demo-{process.pid}"]
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == code
    assert "Traceback" not in errors
    assert list_records() == []


def test_options_for_serve_are_only_those_given() -> None:
    assert serve_options(None, None, None, None) == []
    assert serve_options("m", None, "float32", 0) == ["--model", "m", "--dtype", "float32", "--threads", "0"]


class Falsified:
    """A real engine whose answers have one token changed, in one setting of ``spec``."""

    def __init__(self, real: OpenAiClient, is_on: Callable[[], bool], gap: float) -> None:
        self._real = real
        self._is_on = is_on
        self._gap = gap
        self.continued = 0

    def chat(self, text: str, max_tokens: int, *, scored: bool = False) -> Answer:
        answer = self._real.chat(text, max_tokens, scored=scored)
        tokens, gaps = answer.token_ids, answer.gaps
        if scored:
            gaps = [gaps[0], gaps[1], self._gap, *gaps[3:]]
        elif self._is_on():
            tokens = [*tokens[:2], tokens[2] ^ 1, *tokens[3:]]
        return Answer(prompt_ids=answer.prompt_ids, token_ids=tokens, gaps=gaps)

    def complete(self, ids: Sequence[int], max_tokens: int) -> list[int]:
        self.continued += 1
        return self._real.complete(ids, max_tokens)


def demonstrated(record: EngineRecord, gap: float, said: list[str]) -> tuple[Demonstration, Falsified]:
    """A demonstration whose answers with spec=on have a wrong third token, where the reference's gap is ``gap``."""
    assert record.http_url is not None
    with ControlClient(record, who=WHO) as control, Subscriber(record, TOPICS) as subscriber:
        falsified = Falsified(OpenAiClient(record.http_url), lambda: control.state().knobs["spec"] == "on", gap)
        demonstration = Demonstration(
            record, control, subscriber, falsified, FEW, LineNarrator(said.append), lambda: None
        )
        demonstration.run()
        assert control.state().knobs["spec"] == "auto", "the knob is back where it was"
    return demonstration, falsified


@pytest.mark.slow
def test_planted_differences_against_a_real_engine() -> None:
    """A real difference gives exit code 1; the same one at a near-tie is excused, counted, and the rest compared."""
    said: list[str] = []
    with ServedEngine("falsified", TINY) as engine:
        record = engine.wait_ready(said.append)
        real, _ = demonstrated(record, 5.0, said)
        tie, continued = demonstrated(record, 0.0, said)
    found = {mode.name: mode.compared for mode in real.outcome.modes}
    assert real.outcome.exit_code == ExitCode.FALSE
    assert (found["off"].identical, found["on"].identical, found["auto"].identical) == (True, False, True)
    assert len(found["on"].faults) == found["on"].outputs
    assert real.outcome.as_json()["identical"] is False
    text = "\n".join(outcome_lines(real.outcome))
    assert "outputs NOT IDENTICAL: " in text
    assert "the reference's top two are 5 apart: NOT EXCUSED" in text

    found = {mode.name: mode.compared for mode in tie.outcome.modes}
    assert tie.outcome.exit_code == ExitCode.OK
    assert found["on"].excused == found["on"].outputs == continued.continued
    assert found["off"].excused == found["auto"].excused == 0
    assert any("near-tie, excused (×" in line for line in said)
    ties, outputs = found["on"].excused, found["on"].outputs
    assert any(f"outputs identical but for {ties} near-ties (in {outputs} outputs), switches" in line for line in said)
    assert len({difference.prompt for difference in found["on"].differences}) == 8
    assert any(line.startswith("… and ") for line in said), "the third of eight prompts is the last that is shown"
