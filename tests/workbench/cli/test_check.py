"""check on a live bus, as a program: what it prints, what it exits with, what it leaves for CI servers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import pytest

from probes.checks import METRICS
from probes.discovery import list_records
from tests.workbench import golden
from tests.workbench.made_engine import MadeEngine, stepping
from tests.workbench.recording.made_recording import write
from workbench.exit_codes import ExitCode
from workbench.recording.reader import Recording

ROOT = Path(__file__).parents[3]


def start(*arguments: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-m", "workbench", "check", *arguments]
    return subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    with process:
        try:
            out, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, out, errors


def check(*arguments: str) -> tuple[int, str, str]:
    return finish(start(*arguments))


def test_what_holds_what_does_not_and_what_was_not_measured(engine: MadeEngine, tmp_path: Path) -> None:
    """The table is golden; exit code 1; the same verdicts in the file for CI."""
    report = tmp_path / "check.xml"
    expected = ["accept_length > 1.8", "gaps == 0", "slot_mismatches == 0", "requests_max < 3", "ttft_ms_p50 < 500"]
    with stepping(engine):
        words = [word for text in expected for word in ("--expect", text)]
        code, out, errors = check("made", *words, "--over", "1s", "--junit", str(report))
    assert code == ExitCode.FALSE
    golden.check("cli-check", out)
    assert "watching made for 1 s" in errors
    assert "3 of 5 expectations hold" in errors
    (suite,) = ElementTree.parse(report).getroot()
    assert [case.get("name") for case in suite.findall("testcase")] == expected
    assert suite.get("failures") == "2"
    assert list(tmp_path.iterdir()) == [report], "no half-written file is left"


def test_all_hold(engine: MadeEngine) -> None:
    with stepping(engine):
        code, out, errors = check("--over", "1s", "-e", "steps > 0", "-e", "accept_length>1.8", "--json")
    assert code == ExitCode.OK, errors
    found = json.loads(out)
    assert found["ok"] is True
    assert found["source"] == "engine"
    assert found["metrics"]["accept_length"] == pytest.approx(1 + 4 / 3)
    assert set(found["metrics"]) == set(METRICS)
    assert [one["holds"] for one in found["expectations"]] == [True, True]


def test_an_idle_engine_passes_no_expectation_of_acceptance(engine: MadeEngine) -> None:
    code, out, errors = check("--over", "0.3s", "-e", "accept_length > 0")
    assert code == ExitCode.FALSE
    assert "no step ran: send it requests while it is watched" in errors
    assert "n/a: nothing was verified" in out
    assert "NOT MEASURED" in out


def test_without_expectations_every_metric_is_printed(engine: MadeEngine) -> None:
    code, out, _ = check("--over", "0.2s")
    assert code == ExitCode.OK
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(METRICS)


def test_the_list_needs_no_engine() -> None:
    code, out, _ = check("--list")
    assert code == ExitCode.OK
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(METRICS)
    code, out, _ = check("--list", "--json")
    assert [json.loads(line)["name"] for line in out.splitlines()] == list(METRICS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-e", "speed > 1"], "The metrics are:"),
        (["-e", "steps > many"], "is not a number"),
        (["--over", "soon"], "is not a length of time"),
        (["--last", "5s"], "--last is for recordings"),
        (["no-such.mcap", "-e", "steps > 1"], "there is no recording no-such.mcap"),
        (["--junit", "/no/such/folder/x.xml"], "no folder that can be written to"),
    ],
)
def test_wrong_command_lines_are_refused_before_the_wait(arguments: list[str], said: str) -> None:
    """No engine runs here: were anything looked for first, the code would be 3."""
    code, out, errors = check(*arguments)
    assert (code, out) == (ExitCode.USAGE, "")
    assert said in errors


def test_no_engine_of_that_name_is_told_to_ci_too(tmp_path: Path) -> None:
    report = tmp_path / "check.xml"
    code, out, errors = check("nobody", "-e", "steps > 1", "--junit", str(report))
    assert (code, out) == (ExitCode.NO_ENGINE, "")
    assert "no engine named 'nobody'" in errors
    (suite,) = ElementTree.parse(report).getroot()
    assert suite.get("errors") == "1"


@contextmanager
def made_program() -> Iterator[subprocess.Popen[str]]:
    """A made engine in a process of its own, which can be stopped and killed."""
    program = [sys.executable, "-m", "tests.workbench.made_engine", "apart", "50"]
    with subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def test_an_engine_that_falls_silent_is_no_pass() -> None:
    """B96: stopped in the middle, it lost nothing yet; `gaps == 0` must not hold of an engine that is not there."""
    with made_program() as program:
        process = start("apart", "-e", "gaps == 0", "--over", "5s")
        assert process.stderr is not None
        assert "watching apart" in process.stderr.readline()
        time.sleep(0.5)
        os.kill(program.pid, signal.SIGSTOP)
        code, out, errors = finish(process)
        os.kill(program.pid, signal.SIGCONT)
    assert (code, out) == (ExitCode.UNREACHABLE, "")
    assert "silent" in errors or "no answer" in errors


def test_an_engine_that_dies_is_told_at_once() -> None:
    with made_program() as program:
        process = start("apart", "-e", "gaps == 0", "--over", "10m")
        assert process.stderr is not None
        assert "watching apart" in process.stderr.readline()
        time.sleep(0.5)
        program.kill()
        program.wait()
        code, _, errors = finish(process)
    assert code == ExitCode.UNREACHABLE
    assert "has ended" in errors or "no answer" in errors or "has died" in errors
    assert list_records() == []


def test_it_starts_without_torch_and_without_the_screen() -> None:
    code = (
        "import sys, workbench.cli; workbench.cli.main(['check', '--list']); "
        "bad = {'torch', 'textual', 'numpy', 'mcap', 'engine'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60, stdout=subprocess.DEVNULL)


def test_a_recording_with_nothing_in_it_is_no_pass(tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    path.write_bytes(b"\x89MCAP0\r\n")
    code, out, errors = check(str(path), "-e", "gaps == 0")
    assert (code, out) == (ExitCode.FALSE, "")
    assert "has no event in it: not finished" in errors


def test_what_a_damaged_chunk_held_is_a_gap(tmp_path: Path) -> None:
    path = write(tmp_path / "x.mcap")
    with Recording.open(path) as recording:
        offset, length = recording.index.offsets[2], recording.index.lengths[2]
    found = json.loads(check(str(path), "--json")[1])["metrics"]
    data = bytearray(path.read_bytes())
    data[offset + length - 20] ^= 0xFF
    path.write_bytes(data)
    damaged = json.loads(check(str(path), "--json")[1])["metrics"]
    assert damaged["gaps"] > found["gaps"] == 1
    assert damaged["lost"] - found["lost"] >= found["steps"] - damaged["steps"] > 0


def test_asked_for_more_than_there_is(tmp_path: Path) -> None:
    path = write(tmp_path / "x.mcap")
    for option in ("--over", "--last"):
        code, _, errors = check(str(path), "-e", "steps == 58", option, "1h")
        assert code == ExitCode.OK
        assert "is shorter than the 3600 s that were asked for" in errors
