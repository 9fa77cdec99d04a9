"""``record --with-requests`` and ``replay --live`` as a person uses them, with a served engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine import rerun_program
from probes.control import ControlClient
from probes.discovery import find_record
from probes.session_script import Arrival
from tests.engine.server.server_under_test import ROOT, ServerUnderTest, until
from tests.workbench.made_engine import MadeEngine
from tests.workbench.replay.live_session import record
from tests.workbench.served import served
from workbench.cli import main
from workbench.exit_codes import ExitCode
from workbench.recording.reader import Recording
from workbench.replay.session_scripts import session_script

MODEL = "tiny-random (random weights)"
ASKS: list[dict[str, Any]] = [
    {"prompt": "One", "max_tokens": 20, "temperature": 0},
    {"prompt": "Two and more", "max_tokens": 24, "temperature": 1.0, "seed": 5},
    {"prompt": "Three", "max_tokens": 16, "temperature": 0.8, "stop": ["q", "\n"]},
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    yield from served(tmp_path_factory.mktemp("r"), publish_tokens=True)


@pytest.fixture(scope="module")
def recording(server: ServerUnderTest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three requests, one after another, and a switch between them."""
    path = tmp_path_factory.mktemp("f") / "again.mcap"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "XDG_RUNTIME_DIR": str(server.runtime)}
    process = subprocess.Popen(
        [sys.executable, "-m", "workbench", "record", server.name, "--with-requests", "-o", str(path)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    part = path.with_name(path.name + ".part")

    def holds(topic: str, count: int) -> bool:
        if not part.exists() or not part.stat().st_size:
            return False
        with Recording.open(part) as opened:
            return opened.info.counts.get(topic, 0) >= count

    until("the recorder has begun", lambda: holds("heartbeat", 1))
    for number, ask in enumerate(ASKS):
        if number == 1:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("XDG_RUNTIME_DIR", str(server.runtime))
                with ControlClient(find_record(server.name)) as client:
                    client.set_knobs({"spec": "on"}, who="test")
        with server.client() as http:
            answer = http.post("/v1/completions", json={"model": "tiny-random", **ask})
        assert answer.status_code == 200, answer.text
    until("all requests are on the disk", lambda: holds("request", 3 * len(ASKS)))
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert (process.returncode, out) == (ExitCode.OK, f"{path}\n"), errors
    return path


def live(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "workbench", "replay", *words, "--live"],
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_a_served_session_runs_again_identically(recording: Path) -> None:
    done = live(str(recording), "--json")
    assert done.returncode == ExitCode.OK, done.stderr
    result = json.loads(done.stdout)
    assert (result["identical"], result["requests"], result["differing"]) == (True, 3, 0)
    assert (result["first_difference"], result["skipped"], result["model"]) == (None, 0, MODEL)
    assert result["tokens"] > 30
    assert "Traceback" not in done.stderr


def test_a_difference_is_named(recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Recording.open(recording) as opened:
        script = session_script(opened, "again.mcap")
    actions = [
        msgspec.structs.replace(action, output_token_ids=[0] * len(action.output_token_ids or ()))
        if isinstance(action, Arrival)
        else action
        for action in script.actions
    ]
    path = tmp_path / "script.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(script, actions=actions)))
    assert rerun_program.main(["--script", str(path)]) == ExitCode.FALSE
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith(f"again.mcap on {MODEL}: 3 requests, 3 tokens compared in ")
    assert lines[0].endswith("identical: no (3 of 3 requests differ)")
    assert ", position 0, step 1: recorded token 0, got token " in lines[1]


def test_a_model_that_is_not_here(recording: Path) -> None:
    done = live(str(recording), "--model", "/nowhere/at/all")
    assert done.returncode == ExitCode.USAGE
    assert "The recorded engine had model tiny-random" in done.stderr
    assert "as --model" in done.stderr
    assert done.stdout == ""


def test_without_the_flag_nothing_can_be_run_again(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Recording.open(recording) as opened:
        items = [item for _, item in opened.items(topics=("hello", "step", "request", "knob"))]
    plain = record(tmp_path / "plain.mcap", items[0], items[1:], with_requests=False)  # type: ignore[arg-type]
    assert main(["replay", str(plain), "--live"]) == ExitCode.USAGE
    assert "no prompts in it" in capsys.readouterr().err


def test_an_engine_that_keeps_its_tokens_is_refused(
    engine: MadeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["record", "--with-requests"]) == ExitCode.REFUSED
    assert "start it with `specwb serve --publish-tokens`" in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ramp", "--live", "--paused"], "--live draws nothing"),
        (["ramp", "--live", "--at", "3s"], "--live draws nothing"),
        (["ramp", "--json"], "are for --live"),
        (["ramp", "--model", "m"], "are for --live"),
        (["nowhere.mcap", "--live"], "nowhere.mcap"),
        (["ramp", "--live"], "so nothing can be run again; start the engine with `specwb serve --publish-tokens`"),
    ],
)
def test_refusals(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", *words]) == ExitCode.USAGE
    assert message in " ".join(capsys.readouterr().err.split())
