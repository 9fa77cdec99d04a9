"""info, verify, repair and export, as they print."""

from __future__ import annotations

import json
import resource
import signal
from pathlib import Path

import pytest

from probes.subscriber import Received
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.recording.made_recording import write
from tests.workbench.replay.recorded_file import write_recording
from workbench.cli import main
from workbench.exit_codes import ExitCode
from workbench.recording.reader import Recording
from workbench.replay.player import MARKS, SWITCHES, Player

GOLDEN = Path(__file__).parents[1] / "recording" / "golden"


def test_info_for_a_person(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """B99: of the file of schema version 1 that is kept for ever."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    monkeypatch.chdir(GOLDEN)
    assert main(["recordings", "info", "schema-1.mcap"]) == ExitCode.OK
    golden.check("cli-recordings-info", capsys.readouterr().out)
    monkeypatch.delenv("TZ")
    time.tzset()


def test_info_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.mcap", finish=False)
    assert main(["recordings", "info", str(path), "--json"]) == ExitCode.OK
    found = json.loads(capsys.readouterr().out)
    assert found["finished"] is False
    assert "recorder was killed" in found["missing"]
    assert found["knobs"]["threshold"] == 4
    assert (found["switches"], found["knob_changes"], found["gaps"], found["lost"]) == (2, 1, 1, 4)
    assert found["counts"]["step"] == 58


def marks_of(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """The rows of switches and marks that ``info`` prints."""
    assert main(["recordings", "info", str(path)]) == ExitCode.OK
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()[1:])
    return rows["switches"], rows["marks"]


def test_info_counts_the_marks_that_the_player_stops_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Switches are not among them: they have a row, and keys, of their own."""
    path = write(tmp_path / "x.mcap")
    with Recording.open(path) as recording:
        player = Player(recording)
    switches, marks = marks_of(path, capsys)
    assert int(switches) == len(player.places(SWITCHES)) == 2
    assert sum(int(part.split()[0]) for part in marks.split(", ")) == len(player.places(MARKS)) == 5


def test_info_of_one_that_only_switches(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    items: list[tuple[float, Received]] = [(made.T0, made.hello())]
    items += [(made.T0 + n, made.step(n, spec=n == 1)) for n in (1, 2)]
    assert marks_of(write_recording(tmp_path / "x.mcap", items), capsys) == ("1", "none")


def test_verify_and_repair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.mcap", finish=False)
    assert main(["recordings", "verify", str(path)]) == ExitCode.FALSE
    out, errors = capsys.readouterr()
    assert out.startswith("not finished")
    assert "1 finding" in errors
    assert main(["recordings", "repair", str(path)]) == ExitCode.OK
    out, errors = capsys.readouterr()
    assert out == f"{tmp_path / 'x.repaired.mcap'}\n"
    assert "not saved: nothing but what had not reached the file" in errors
    assert main(["recordings", "verify", out.strip()]) == ExitCode.OK
    out, errors = capsys.readouterr()
    assert (out, errors) == ("", f"specwb: {tmp_path / 'x.repaired.mcap'} is sound\n")
    assert main(["recordings", "repair", str(path)]) == ExitCode.USAGE
    assert "never overwritten" in capsys.readouterr().err


def test_many_findings_are_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "x.mcap", [made.hello(), *(made.step(number) for number in range(1, 301, 2))])
    assert main(["recordings", "verify", str(path)]) == ExitCode.FALSE
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 101
    assert lines[-1] == "… and 49 more"


def test_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "x.mcap"))
    assert main(["recordings", "export", path, "--topic", "knob"]) == ExitCode.OK
    out, errors = capsys.readouterr()
    assert [json.loads(line)["type"] for line in out.splitlines()] == ["knob"]
    assert "4 events are not in it" in errors
    target = tmp_path / "x.csv"
    assert main(["recordings", "export", path, "--format", "csv", "-o", str(target)]) == ExitCode.OK
    assert len(target.read_text().splitlines()) == 59
    assert main(["recordings", "export", path, "-o", str(target)]) == ExitCode.USAGE
    assert "exists" in capsys.readouterr().err
    for arguments in (["--topic", "stepp"], ["--format", "csv", "--topic", "step", "--topic", "rows"]):
        assert main(["recordings", "export", path, *arguments]) == ExitCode.USAGE


def test_what_is_no_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.mcap").write_text("nothing of the kind")
    for verb in ("info", "repair", "export"):
        assert main(["recordings", verb, str(tmp_path / "x.mcap")]) == ExitCode.USAGE
        assert "is no recording" in capsys.readouterr().err
    assert main(["recordings", "verify", str(tmp_path / "x.mcap")]) == ExitCode.FALSE


def test_what_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("info", "verify", "repair", "export"):
        assert main(["recordings", verb, str(tmp_path / "none.mcap")]) == ExitCode.USAGE
        out, errors = capsys.readouterr()
        assert (out, errors) == ("", f"specwb: there is no {tmp_path / 'none.mcap'}\n")
        assert main(["recordings", verb, ""]) in (ExitCode.USAGE, ExitCode.FALSE)
        capsys.readouterr()


def test_those_that_ship_are_verified_and_repaired_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["recordings", "verify", "ramp"]) == ExitCode.OK
    assert main(["recordings", "repair", "ramp"]) == ExitCode.OK
    assert capsys.readouterr().out == "ramp.repaired.mcap\n"
    assert [path.name for path in tmp_path.iterdir()] == ["ramp.repaired.mcap"]


def test_an_export_that_does_not_fit_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, target = write(tmp_path / "x.mcap"), tmp_path / "x.json"
    before, kept = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, before[1]))
    try:
        assert main(["recordings", "export", str(path), "-o", str(target)]) == ExitCode.FALSE
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, kept)
    assert "cannot be written: File too large" in capsys.readouterr().err
    assert not target.exists()
