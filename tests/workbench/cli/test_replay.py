"""``specwb replay`` as a command: what it refuses, what it draws, and a terminal that it gives back."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.workbench.cli.test_main import ROOT
from tests.workbench.replay.recorded_file import write_recording
from tests.workbench.replay.stories import long_session
from tests.workbench.tui.terminal import Terminal
from workbench.cli import main
from workbench.exit_codes import ExitCode


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_recording(tmp_path_factory.mktemp("replay") / "load.mcap", long_session(400))


def test_a_screen_as_text(recording: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "x.txt"
    words = ["replay", str(recording), "--at", "step:150", "--screen", "steps", "--size", "100x30"]
    assert main([*words, "--screenshot", str(picture)]) == ExitCode.OK
    lines = picture.read_text().splitlines()
    assert len(lines) == 30
    assert lines[0].startswith(" REPLAY  paused 1x")
    assert any(line.startswith("›") and " 150 " in line for line in lines)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", f"specwb: the screen is in {picture}\n")


def test_a_screen_as_a_picture(recording: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "x.svg"
    assert main(["replay", str(recording), "--screenshot", str(picture)]) == ExitCode.OK
    svg = picture.read_text()
    assert svg.startswith("<svg")
    assert "REPLAY" in svg
    assert "url(http" not in svg
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", f"specwb: the screen is in {picture}\n")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--screen", "nope"], ExitCode.USAGE, "--screen: no screen 'nope'; the screens are overview, steps, "),
        (["--at", "2h"], ExitCode.USAGE, "--at: 2h is outside the recording: it spans "),
        (["--at", "soon"], ExitCode.USAGE, "'soon' is no place in a recording; expected 12s"),
        (["--at", "step:9999"], ExitCode.USAGE, "step 9999 is not in the recording"),
        (["--speed", "100"], ExitCode.USAGE, "'100' is no speed; expected 0.1 to 64, or max"),
        (["--speed", "nan"], ExitCode.USAGE, "is no speed"),
        (["--size", "10x10"], ExitCode.USAGE, "is no size; expected columns x rows, 40x12 to 500x200"),
        (["--size", "big"], ExitCode.USAGE, "is no size"),
    ],
)
def test_refusals(
    recording: Path,
    tmp_path: Path,
    options: list[str],
    code: ExitCode,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    picture = tmp_path / "x.txt"
    assert main(["replay", str(recording), "--screenshot", str(picture), *options]) == code
    captured = capsys.readouterr()
    assert message in " ".join(captured.err.split())
    assert captured.out == ""
    assert not picture.exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [("x.png", "says no format; give a name that ends in .svg or .txt"), ("gone/x.svg", "there is no folder")],
)
def test_pictures_that_cannot_be(
    recording: Path, tmp_path: Path, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(recording), "--screenshot", str(tmp_path / name)]) == ExitCode.USAGE
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "no.mcap"), "--screenshot", str(tmp_path / "x.txt")]) == ExitCode.USAGE
    assert "there is no " in capsys.readouterr().err


def test_without_a_terminal_it_is_one_line(recording: Path) -> None:
    """B110."""
    result = subprocess.run(
        [sys.executable, "-m", "workbench", "replay", str(recording)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == ExitCode.USAGE
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "replay needs a terminal" in line
    assert "--screenshot" in line


def test_a_cut_recording_says_so_beside_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    part = write_recording(tmp_path / "cut.mcap", long_session(200), finish=False)
    assert main(["replay", str(part), "--screenshot", str(tmp_path / "x.txt")]) == ExitCode.OK
    assert "cut.mcap.part: not finished" in (tmp_path / "x.txt").read_text()
    assert "not finished" in capsys.readouterr().err


def test_it_imports_neither_torch_nor_numpy(recording: Path, tmp_path: Path) -> None:
    picture = str(tmp_path / "x.txt")
    code = (
        "import sys; from workbench.cli import main; "
        f"code = main(['replay', {str(recording)!r}, '--screenshot', {picture!r}]); "
        "print([name for name in ('torch', 'numpy', 'engine') if name in sys.modules]); sys.exit(code)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_on_a_terminal_it_plays_and_gives_the_terminal_back(recording: Path) -> None:
    """B107."""
    with Terminal("replay", str(recording), "--at", "switch:1", "--paused") as terminal:
        terminal.wait_for("REPLAY")
        terminal.press(b".")
        terminal.press(b"q")
        assert terminal.wait() == 0
        assert terminal.modes_on == set()
        assert terminal.attributes == terminal.before
