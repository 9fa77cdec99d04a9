"""The scripted probes on the real engine: as programs that pass, and held against faults that they must find."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from probes.ci import engine_under_probe, lossless_switch, threshold_crossing
from probes.ci.engine_under_probe import EngineUnderProbe
from probes.ci.findings import ProbeExit
from probes.ci.openai_client import Answer, OpenAiClient
from probes.control import ControlClient
from probes.discovery import find_record
from tests.engine.server.server_under_test import ServerUnderTest, until

ROOT = Path(__file__).parents[3]
TINY = {"model": "tiny-random", "draft_model": "auto", "dtype": "float32", "threads": 1, "knobs": {"threshold": 4}}
DEFAULT = {"model": "smollm2-135m", "draft_model": "auto", "dtype": "float32", "knobs": {"threshold": 2}}


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="pc"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def served(directory: Path) -> Iterator[ServerUnderTest]:
    with ServerUnderTest(directory, engine=TINY, name="probed") as server:
        server.wait_ready()
        yield server


@pytest.fixture
def server(served: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> ServerUnderTest:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(served.runtime))
    return served


def program(module: str, runtime: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", f"probes.ci.{module}", *arguments],
        cwd=ROOT,
        env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def knobs_of(name: str) -> dict[str, Any]:
    with ControlClient(find_record(name)) as control:
        return control.state().knobs


def test_threshold_crossing_passes(server: ServerUnderTest) -> None:
    before = knobs_of("probed")
    done = program("threshold_crossing", server.runtime, "probed", "--tokens", "32")
    assert done.returncode == ProbeExit.OK, done.stdout + done.stderr
    assert done.stderr == ""
    assert "clients 1 → 2 → 4 → 8 → 4 → 2 → 1" in done.stdout
    assert "ok    mode, widths and reason follow the rule in every step" in done.stdout
    assert "ok    steps ran 1 wide and 16 wide: widths 1, 16" in done.stdout
    assert "passed: 9 claims hold" in done.stdout
    assert knobs_of("probed") == before


def test_threshold_crossing_with_a_threshold_of_its_own(server: ServerUnderTest) -> None:
    """For the time of the probe; whatever was in force is in force again."""
    before = knobs_of("probed")
    done = program("threshold_crossing", server.runtime, "--threshold", "1", "--tokens", "16")
    assert done.returncode == ProbeExit.OK, done.stdout + done.stderr
    assert "threshold 1, resumes at 1" in done.stdout
    assert knobs_of("probed") == before


def test_lossless_switch_passes(server: ServerUnderTest) -> None:
    before = knobs_of("probed")
    done = program("lossless_switch", server.runtime, "probed", "--switches", "10")
    assert done.returncode == ProbeExit.OK, done.stdout + done.stderr
    assert "ok    off and on: the same tokens: 8 answers, 384 tokens" in done.stdout
    assert "ok    off and switching: the same tokens" in done.stdout
    assert "passed: 11 claims hold" in done.stdout
    assert knobs_of("probed") == before


def test_knobs_turned_by_another_are_found(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Somebody raises the threshold in the middle of the ramp: steps then run by other knobs than the probe's."""
    chat, turned = OpenAiClient.chat, threading.Event()

    def chat_then_turn(self: OpenAiClient, text: str, max_tokens: int, **given: Any) -> Answer:
        if not turned.is_set():
            turned.set()
            with ControlClient(find_record("probed")) as control:
                control.set_knobs({"threshold": 40}, who="ann")
        return chat(self, text, max_tokens, **given)

    monkeypatch.setattr(OpenAiClient, "chat", chat_then_turn)
    code = threshold_crossing.main(["probed", "--tokens", "16"])
    out = capsys.readouterr().out
    assert code == ProbeExit.FALSE
    assert "FAIL  mode, widths and reason follow the rule in every step" in out
    assert "somebody turned them" in out
    assert "claims do not hold" in out


def test_a_changed_token_is_found_and_its_position_named(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = OpenAiClient.chat

    def falsified(self: OpenAiClient, text: str, max_tokens: int, *, scored: bool = False) -> Answer:
        answer = chat(self, text, max_tokens, scored=scored)
        if scored:
            return Answer(answer.prompt_ids, answer.token_ids, [5.0] * max_tokens, answer.text)
        tokens = answer.token_ids
        return Answer(answer.prompt_ids, [*tokens[:7], tokens[7] ^ 1, *tokens[8:]], text=answer.text)

    monkeypatch.setattr(OpenAiClient, "chat", falsified)
    code = lossless_switch.main(["probed", "--tokens", "16", "--switches", "1"])
    out = capsys.readouterr().out
    assert code == ProbeExit.FALSE
    assert "FAIL  off and on: the same tokens: 8 answers, 128 tokens, 8 differences" in out
    assert "prompt 'text 1', position 7: token" in out
    assert "NOT EXCUSED" in out


def test_lost_events_and_leaks_are_found(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settle = EngineUnderProbe.settle

    def settle_then_lose(self: EngineUnderProbe, take: Any) -> None:
        settle(self, take)
        self.tally.lost += 3

    monkeypatch.setattr(EngineUnderProbe, "settle", settle_then_lose)
    assert threshold_crossing.main(["probed", "--tokens", "16"]) == ProbeExit.FALSE
    assert "FAIL  nothing was lost on the bus: " in capsys.readouterr().out


def test_an_engine_at_work_for_somebody_else_is_not_probed(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its steps are not the probe's, and a probe must not fail an engine for them."""
    client, enough = OpenAiClient(server.url), threading.Event()

    def ask() -> None:
        while not enough.is_set():
            client.chat("Tell me everything.", 200)

    monkeypatch.setattr(engine_under_probe, "IDLE_S", 0.0)
    others = [threading.Thread(target=ask) for _ in range(4)]
    for other in others:
        other.start()
    try:
        with ControlClient(find_record("probed")) as control:
            until("the engine is at work", lambda: control.state().stage != "idle")
        assert threshold_crossing.main(["probed"]) == ProbeExit.USAGE
    finally:
        enough.set()
        for other in others:
            other.join()
    assert "at work for somebody else" in capsys.readouterr().err


@pytest.mark.parametrize("module", ["threshold_crossing", "lossless_switch"])
def test_what_cannot_be_probed(module: str, server: ServerUnderTest, directory: Path) -> None:
    nobody = program(module, server.runtime, "nobody")
    assert (nobody.returncode, nobody.stdout) == (ProbeExit.NO_ENGINE, "")
    assert "no engine named 'nobody'" in nobody.stderr
    wrong = program(module, server.runtime, "--tokens", "3")
    assert wrong.returncode == ProbeExit.USAGE
    assert "out of range: 8 to 4096" in wrong.stderr


def test_a_threshold_that_no_load_can_cross_is_refused(server: ServerUnderTest) -> None:
    done = program("threshold_crossing", server.runtime, "--threshold", "64")
    assert (done.returncode, done.stdout) == (ProbeExit.USAGE, "")
    assert "cannot be crossed by at most 64 requests" in done.stderr


def test_probes_import_neither_side() -> None:
    code = (
        "import sys, probes.ci.threshold_crossing, probes.ci.lossless_switch; "
        "bad = {'torch', 'textual', 'rich', 'numpy', 'workbench', 'engine'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_both_on_the_default_model() -> None:
    """In float32, where the same text means the same tokens up to near-ties under 1e-3."""
    directory = Path(tempfile.mkdtemp(prefix="pd"))
    try:
        with ServerUnderTest(directory, engine=DEFAULT, name="full") as server:
            server.wait_ready()
            crossing = program("threshold_crossing", server.runtime, "--tokens", "12", timeout=400)
            assert crossing.returncode == ProbeExit.OK, crossing.stdout + crossing.stderr
            lossless = program("lossless_switch", server.runtime, "--tokens", "16", "--switches", "4", timeout=400)
            assert lossless.returncode == ProbeExit.OK, lossless.stdout + lossless.stderr
    finally:
        shutil.rmtree(directory)


def test_texts_of_prescribed_acceptance_are_not_compared(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They follow the draft, right or wrong, so a switch changes them; the threshold's rule holds for any text."""
    enter = EngineUnderProbe.__enter__

    def entered(engine: EngineUnderProbe) -> EngineUnderProbe:
        enter(engine)
        config = {**engine.hello.config, "simulate_accept": 2.6}
        engine.hello = msgspec.structs.replace(engine.hello, config=config)
        return engine

    monkeypatch.setattr(EngineUnderProbe, "__enter__", entered)
    assert lossless_switch.main(["probed"]) == ProbeExit.USAGE
    assert "simulates acceptance" in capsys.readouterr().err
    threshold_crossing.main(["probed", "--tokens", "8"])
    assert capsys.readouterr().out.startswith("SIMULATED: accept length set to 2.6\n")
