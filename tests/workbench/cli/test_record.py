"""record as a program."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from probes.events import TOPICS
from tests.workbench import made_events as made
from tests.workbench.made_engine import MadeEngine, stepping
from workbench.cli import main
from workbench.cli.record import TopicList
from workbench.exit_codes import ExitCode
from workbench.recording.reader import Recording

ROOT = Path(__file__).parents[3]


def start(folder: Path, *arguments: str, limit: int | None = None) -> subprocess.Popen[str]:
    def confine() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "workbench", "record", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=confine,  # noqa: PLW1509 (the limit is the child's alone)
    )


def until_recording(folder: Path) -> None:
    """A step is on the disk."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for part in folder.glob("*.part"):
            if part.stat().st_size:
                with Recording.open(part) as opened:
                    if opened.info.counts.get("step"):
                        return
        time.sleep(0.02)
    pytest.fail("nothing was recorded within 30 s")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_finish_the_file(engine: MadeEngine, tmp_path: Path, number: int) -> None:
    """B94."""
    with stepping(engine):
        process = start(tmp_path, "--note", "by hand")
        until_recording(tmp_path)
        process.send_signal(number)
        out, errors = process.communicate(timeout=30)
    assert process.returncode == ExitCode.OK, errors
    (path,) = tmp_path.iterdir()
    assert out == f"{path.name}\n"
    assert path.name.startswith("made-20")
    assert errors.startswith(f"specwb: recording made to {path.name}\n")
    assert "lost 0" in errors
    assert "\x1b" not in errors
    assert "\r" not in errors
    with Recording.open(path) as opened:
        assert opened.info.is_finished
        assert opened.info.about["note"] == "by hand"


def test_for_a_time_and_some_topics(engine: MadeEngine, tmp_path: Path) -> None:
    with stepping(engine):
        process = start(tmp_path, "made", "--for", "1.5s", "--topics", "step,rows", "-o", "x.mcap")
        out, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.OK, errors
    assert out == "x.mcap\n"
    with Recording.open(tmp_path / "x.mcap") as opened:
        assert set(opened.info.counts) <= {"step", "rows", "hello", "mark"}
        assert opened.info.counts["step"] > 0
        assert opened.info.about["topics"] == "step,rows,knob,alert,hello"


def test_a_disk_that_takes_no_more(engine: MadeEngine, tmp_path: Path) -> None:
    """B98: the words, the exit code, and a file that can be read."""
    with stepping(engine):
        process = start(tmp_path, "-o", "x.mcap", limit=30_000)
        out, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.FALSE
    assert out == "x.mcap.part\n"
    assert "recording stopped: the file is as large as it may become; what came before is in x.mcap.part" in errors
    assert "Traceback" not in errors
    with Recording.open(tmp_path / "x.mcap.part") as opened:
        assert opened.info.counts["step"] > 0


def test_losses_are_an_exit_code(engine: MadeEngine, tmp_path: Path) -> None:
    with stepping(engine):
        process = start(tmp_path, "-o", "x.mcap")
        until_recording(tmp_path)
    event, deadline, lost = made.step(1), time.monotonic() + 30, 0
    while not lost and time.monotonic() < deadline:
        for _ in range(20_000):
            engine.bus.publish(event)
        time.sleep(0.5)
        with Recording.open(tmp_path / "x.mcap.part") as opened:
            lost = opened.lost()
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert process.returncode == ExitCode.FALSE
    assert out == "x.mcap\n"
    assert "events were lost before they reached the recording" in errors


def test_what_cannot_begin(
    engine: MadeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mcap").touch()
    for arguments, words in [
        (("-o", "x.mcap"), "never overwritten"),
        (("-o", "no/such/folder/x.mcap"), "cannot be written"),
        (("-o", "nowhere/"), "there is no folder nowhere/"),
        (("-o", "x" * 300), "File name too long"),
        (("--topics", "stepp"), "there is no topic 'stepp'; there are step, rows"),
        (("--for", "soon"), "'soon'"),
    ]:
        assert main(["record", *arguments]) == ExitCode.USAGE
        assert words in capsys.readouterr().err
    assert main(["record", "nobody"]) == ExitCode.NO_ENGINE
    assert [path.name for path in tmp_path.iterdir()] == ["x.mcap"]


def test_topics() -> None:
    kind = TopicList()
    assert kind.convert("all", None, None) == tuple(TOPICS)
    assert kind.convert(" step, rows ", None, None) == ("step", "rows")
    with pytest.raises(click.BadParameter, match="name at least one"):
        kind.convert(",", None, None)
