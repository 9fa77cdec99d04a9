"""``specwb bench`` against a real engine with a tiny random model, over real HTTP and the real bus."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from probes.control import Applied, ControlClient
from probes.discovery import find_record
from tests.engine.server.server_under_test import ROOT, ServerUnderTest, until
from tests.workbench import golden
from tests.workbench.served import MAX_RUNNING, served
from workbench.cli import main
from workbench.exit_codes import ExitCode


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    yield from served(tmp_path_factory.mktemp("b"))


@pytest.fixture(autouse=True)
def in_its_runtime_dir(server: ServerUnderTest, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(server.runtime))


def bench(tmp_path: Path, *words: str, code: int = ExitCode.OK) -> dict[str, Any]:
    """The report of one run."""
    path = tmp_path / "out.json"
    assert main(["bench", *words, "--json", str(path)]) == code
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def spec_of(server: ServerUnderTest) -> str:
    with ControlClient(find_record(server.name)) as control:
        return str(control.state().knobs["spec"])


def test_closed_loop_counts_tokens_and_steps_of_exactly_its_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B84: tokens by usage = tokens by the engine's steps, and the peak is not below the average."""
    report = bench(tmp_path, "--clients", "1,3", "--requests", "6", "--random", "20,17")
    for result, clients in zip(report["results"], (1, 3), strict=True):
        assert (result["completed"], result["failed"], result["errors"]) == (6, 0, {})
        assert result["total_output_tokens"] == result["engine_emitted_tokens"] == 6 * 17
        assert result["max_concurrent_requests"] == result["max_concurrency"] == clients
        assert result["max_output_tokens_per_s"] >= result["output_throughput"] > 0
        assert result["mean_e2el_ms"] >= result["mean_ttft_ms"] > 0
        assert result["notes"] == []
    # The tiny tokenizer makes several tokens of a word; the prompt has the length that was asked for all the same.
    assert report["results"][0]["total_input_tokens"] / 6 == pytest.approx(20, abs=4)
    assert report["workload"]["random_input_len"] == 20
    out = capsys.readouterr()
    assert "clients" in out.out
    assert "3 clients: " in out.err


def test_modes_take_turns_and_the_knob_is_given_back(
    server: ServerUnderTest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under ``off`` nothing is verified, under ``on`` everything: the runs really ran as they say."""
    assert spec_of(server) == "auto"
    words = ("--clients", "2", "--requests", "4", "--max-tokens", "12", "--modes", "off,on,auto", "--pairs", "2")
    report = bench(tmp_path, *words)
    by_mode = {result["mode"]: result for result in report["results"]}
    assert list(by_mode) == ["off", "on", "auto"]
    assert by_mode["off"]["accept_length"] is None
    assert by_mode["on"]["accept_length"] >= 1
    assert {result["rounds"] for result in by_mode.values()} == {2}
    assert [len(result["output_throughput_by_round"]) for result in by_mode.values()] == [2, 2, 2]
    ratios = {(ratio["numerator"], ratio["denominator"]): ratio for ratio in report["ratios"]}
    assert ("on", "off") in ratios
    assert {ratio["pairs"] for ratio in ratios.values()} == {2}
    assert spec_of(server) == "auto"
    text = capsys.readouterr().out
    assert "on / off: " in text
    assert "output tok/s" in text


def test_open_loop_sends_at_poissons_times(tmp_path: Path) -> None:
    report = bench(tmp_path, "--rate", "200", "--requests", "10", "--random", "8,8", "--seed", "5")
    (result,) = report["results"]
    assert (result["completed"], result["request_rate"], result["max_concurrency"]) == (10, 200.0, None)
    assert (report["workload"]["arrivals"], report["workload"]["arrival_seed"]) == ("poisson", 5)


def test_more_clients_than_run_at_once_wait_and_are_answered(tmp_path: Path) -> None:
    report = bench(tmp_path, "--clients", str(3 * MAX_RUNNING), "--requests", "40", "--random", "8,8")
    assert report["results"][0]["completed"] == 40


def test_prompts_of_a_file_end_where_the_model_ends_them(tmp_path: Path) -> None:
    prompts = tmp_path / "p.jsonl"
    prompts.write_text('{"id": "a", "prompt": "Hello"}\n{"id": "b", "prompt": "World"}\n')
    report = bench(tmp_path, "--clients", "1", "--requests", "2", "--prompts", str(prompts), "--max-tokens", "9")
    assert report["workload"]["dataset_path"] == "p.jsonl"
    assert report["workload"]["ignore_eos"] is False
    assert 2 <= report["results"][0]["total_output_tokens"] <= 18


def test_the_report_has_the_fields_names(tmp_path: Path) -> None:
    """Programs read it: names may be added, and the golden file then says so."""
    words = ("--clients", "2", "--requests", "4", "--random", "8,8", "--modes", "off,auto", "--pairs", "1")
    report = bench(tmp_path, *words)
    assert report["environment"]["model"]["name"].startswith("tiny-random")
    golden.check("bench-json", "\n".join(sorted(set(names_in(report)))))


def names_in(value: Any, path: str = "") -> Iterator[str]:
    """Paths of all fields; what the engine says about itself is its own affair."""
    if isinstance(value, dict) and path not in (".environment", ".results[].errors"):
        for name, inner in value.items():
            yield from names_in(inner, f"{path}.{name}")
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from names_in(inner, f"{path}[]")
    else:
        yield path.removeprefix(".")


def test_json_on_stdout_leaves_the_text_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--clients", "1", "--requests", "1", "--random", "8,4", "--json", "-"]) == ExitCode.OK
    out = capsys.readouterr()
    assert json.loads(out.out)["results"][0]["completed"] == 1
    assert "output tok/s" in out.err


@contextmanager
def started(server: ServerUnderTest, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The command as a process of its own, which ends with the test at the latest."""
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(server.runtime), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "workbench", "bench", *words],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_ctrl_c_prints_what_there_is_and_gives_the_knob_back(server: ServerUnderTest) -> None:
    words = ("--clients", "1", "--duration", "1h", "--random", "8,8", "--modes", "off,on", "--json", "-")
    with started(server, *words) as process:
        until("a run goes on under spec=off", lambda: spec_of(server) == "off")
        until("the engine works for it", lambda: busy(server))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    report = json.loads(out)
    assert report["stopped_by"] == "Ctrl-C"
    assert report["results"][0]["interrupted"] is True
    assert "stopped before its end: Ctrl-C" in err
    assert spec_of(server) == "auto"


def busy(server: ServerUnderTest) -> bool:
    with ControlClient(find_record(server.name)) as control:
        return control.state().stage != "idle"


def is_past(server: ServerUnderTest, step: int) -> bool:
    with ControlClient(find_record(server.name)) as control:
        return control.state().step > step


def test_another_hand_on_the_knob_ends_the_run_and_is_respected(server: ServerUnderTest) -> None:
    """Two clients changing one knob: what follows would compare nothing, and the other one's setting stays."""
    words = ("--clients", "1", "--requests", "12", "--random", "8,32", "--modes", "off,auto", "--json", "-")
    with started(server, *words) as process, ControlClient(find_record(server.name), who="ann") as control:
        until("a run goes on under spec=off", lambda: spec_of(server) == "off" and busy(server))
        assert isinstance(control.set_knobs({"spec": "on"}), Applied)
        out, err = process.communicate(timeout=120)
        assert control.state().knobs["spec"] == "on"
        control.set_knobs({"spec": "auto"})
    assert process.returncode == ExitCode.REFUSED
    assert "somebody else has changed it meanwhile" in err
    (result,) = json.loads(out)["results"]
    assert "ann changed knobs during the run: spec off → on" in result["notes"]


def test_a_server_that_dies_in_the_run_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was measured is printed, the failures have reasons, and nobody waits for ever."""
    for server in served(tmp_path):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(server.runtime))
        with started(server, "--clients", "2", "--duration", "1h", "--random", "8,8", "--json", "-") as process:
            until("the trial requests are long over", partial(is_past, server, 100))
            server.process.kill()
            server.process.wait()
            out, err = process.communicate(timeout=120)
    assert process.returncode == ExitCode.UNREACHABLE
    (result,) = json.loads(out)["results"]
    assert result["failed"] >= 20
    assert set(result["errors"]) <= {"no connection", "connection lost"}
    assert "requests in a row failed" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--url", "http://127.0.0.1:1/v1", "--modes", "on,off"], "--modes switches a knob over the bus"),
        (["demo", "--url", "http://127.0.0.1:1/v1"], "NAME or --url"),
        (["--clients", "1", "--rate", "2"], "a closed loop and --rate an open one"),
        (["--clients", "1,x"], "expected whole numbers"),
        (["--clients", "0"], "above 0"),
        (["--modes", "off,of"], "expected some of off, on, auto"),
        (["--random", "128"], "expected 2 whole numbers"),
        (["--random", "8,8", "--max-tokens", "4"], "no --max-tokens"),
        (["--requests", "4", "--duration", "60s"], "not both"),
        (["--url", "ftp://x"], "no address of an endpoint"),
        (["--json", "/nowhere/at/all.json"], "no file can be written there"),
    ],
)
def test_a_wrong_command_line_is_refused_before_anything_runs(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", *words]) == ExitCode.USAGE
    assert message in " ".join(capsys.readouterr().err.split())
