"""check on recordings: whole, a part of them, cut off, and what is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from probes.events import KvUse, StepEvent
from probes.subscriber import Received
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.recording import made_recording
from workbench.cli import main
from workbench.exit_codes import ExitCode


@pytest.fixture
def story(tmp_path: Path) -> Path:
    """Two boots, with switches, losses, alerts and a restart: see made_recording."""
    return made_recording.write(tmp_path / "story.mcap")


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["check", *words, "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, found


def test_the_whole_of_it(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", str(story), "-e", "gaps == 0", "-e", "accept_length > 1.8", "-e", "restarts <= 1"])
    captured = capsys.readouterr()
    assert code == ExitCode.FALSE
    golden.check("cli-check-recording", captured.out)
    assert "7 events were lost, dropped or unreadable" in captured.err


def test_counts_are_those_of_the_events_in_it(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, found = checked(capsys, str(story))
    metrics, session = found["metrics"], made_recording.session()
    steps = [item for item in session if isinstance(item, StepEvent)]
    assert code == ExitCode.OK
    assert found["source"] == "recording"
    assert metrics["steps"] == len(steps)
    assert (metrics["gaps"], metrics["lost"], metrics["late"]) == (1, 3, 2)
    assert (metrics["malformed"], metrics["dropped"], metrics["restarts"]) == (1, 3, 1)
    assert (metrics["knob_changes"], metrics["alerts"], metrics["requests_finished"]) == (1, 1, 1)
    correct, verified = sum(s.correct_drafts for s in steps), sum(s.verified for s in steps)
    assert metrics["accept_length"] == pytest.approx(1 + correct / verified)


def test_its_first_part_and_its_last(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first boot is over within 4 s; the second begins at 10 s, and its restart is known when the first ended."""
    _, whole = checked(capsys, str(story))
    _, first = checked(capsys, str(story), "--over", "5s")
    _, last = checked(capsys, str(story), "--last", "3s")
    assert first["seconds"] == pytest.approx(5)
    assert (first["metrics"]["restarts"], first["metrics"]["gaps"]) == (1, 1)
    assert last["seconds"] == pytest.approx(3)
    assert (last["metrics"]["restarts"], last["metrics"]["gaps"]) == (0, 0)
    assert 0 < last["metrics"]["steps"] <= 31
    assert first["metrics"]["steps"] + last["metrics"]["steps"] <= whole["metrics"]["steps"]


def test_more_than_there_is_is_all_there_is(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, whole = checked(capsys, str(story))
    for option in ("--over", "--last"):
        _, found = checked(capsys, str(story), option, "1h")
        assert found["metrics"]["steps"] >= whole["metrics"]["steps"] - 1
        assert found["seconds"] == pytest.approx(whole["seconds"])


def test_a_recording_that_was_cut_off_is_read_and_said_to_be_incomplete(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B98: what a killed recorder left is still evidence, and is not taken for the whole."""
    made_recording.write(tmp_path / "cut.mcap", finish=False)
    (part,) = tmp_path.iterdir()
    assert part.name == "cut.mcap.part"
    code, found = checked(capsys, str(part), "-e", "steps > 10")
    assert code == ExitCode.OK
    assert any("incomplete" in note for note in found["notes"])
    assert main(["check", str(tmp_path / "cut.mcap"), "-e", "steps > 10"]) == ExitCode.USAGE
    assert "cut.mcap.part, which was not finished" in capsys.readouterr().err


def test_an_idle_end_shows_whether_slots_leaked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pools = {name: KvUse(used=2, total=64) for name in ("target", "draft")}
    items: list[Received] = [made.hello(), made.step(1), made.step(2, kv=pools), made.heartbeat(1, step=2)]
    path = made_recording.write(tmp_path / "leak.mcap", items)
    code, found = checked(capsys, str(path), "-e", "slots_leaked == 0")
    assert code == ExitCode.FALSE
    assert found["metrics"]["slots_leaked"] == 4


def test_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.mcap"
    path.write_text("not a recording\n")
    assert main(["check", str(path), "-e", "steps > 1", "--junit", str(tmp_path / "x.xml")]) == ExitCode.FALSE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "notes.mcap" in captured.err
    assert 'errors="1"' in (tmp_path / "x.xml").read_text()


def test_first_and_last_exclude_each_other(story: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(story), "--over", "1s", "--last", "1s"]) == ExitCode.USAGE
    assert "exclude each other" in capsys.readouterr().err
