"""The demo on a terminal: the screen over a real engine on the tiny random model, and what is said after it."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from probes.discovery import list_records
from tests.workbench.tui.terminal import Terminal
from workbench.cli import main
from workbench.exit_codes import ExitCode
from workbench.recording.reader import Recording

TINY = ("demo", "--model", "tiny-random", "--dtype", "float32", "--threads", "1")


def demo(*arguments: str) -> Terminal:
    return Terminal(*TINY, *arguments, size=(120, 40), OMP_NUM_THREADS="1")


def recording_of(text: str) -> Path:
    """Where the demo says that its recording is; it is the one that `replay` is to be given."""
    said = re.search(r"^see it again:\r?\n  .*(?:specwb|-m workbench) replay (\S+\.mcap)\r?$", text, re.MULTILINE)
    assert said is not None, text
    return Path(said[1])


@pytest.mark.slow
def test_watched_to_its_end_it_leaves_a_comparison_and_a_recording(capsys: pytest.CaptureFixture[str]) -> None:
    """The screen is up while the ramp runs; q prints the table on the normal screen; the recording holds all of it."""
    with demo("--tokens", "8") as terminal:
        terminal.wait_for("1049h")
        terminal.wait_for("the ramp has ended; q quits and prints the comparison")
        assert list_records() != []
        terminal.press(b"q")
        assert terminal.wait() == ExitCode.OK
        text = terminal.after_screen
        assert terminal.modes_on == set()
        assert terminal.attributes == terminal.before
    assert list_records() == []
    assert re.search(r"outputs identical( but for \d+ near-ties?)? \(in \d+ outputs\)", text)
    assert "slots lost: 0; slots expected = reserved = written: yes" in text
    assert "verdict: " in text
    assert "ended early" not in text
    path = recording_of(text)
    with Recording.open(path) as recording:
        assert recording.info.is_finished
        marks = [mark.text for mark in recording.marks() if mark.kind == "bookmark"]
    assert [mark.split(":")[0] for mark in marks] == ["reference", "spec=off", "spec=on", "spec=auto"]
    code = main(["check", str(path), "-e", "slot_mismatches == 0", "-e", "switches >= 2", "-e", "gaps == 0", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert code == ExitCode.OK, found["expectations"]


@pytest.mark.slow
def test_quit_early_it_stops_the_load_and_says_what_is_missing() -> None:
    """Nothing is asked; the engine is gone; what was found out is printed, with exit code 0."""
    with demo("--tokens", "1024") as terminal:
        terminal.wait_for("demo: reference: 8 prompts")
        terminal.press(b"q")
        assert terminal.wait() == ExitCode.OK
        text = terminal.after_screen
        assert terminal.attributes == terminal.before
    assert list_records() == []
    assert "ended early: nothing was found out about spec=off, spec=on, spec=auto" in text
    assert "verdict" not in text
    with Recording.open(recording_of(text)) as recording:
        assert recording.info.is_finished


@pytest.mark.slow
def test_quit_in_the_middle_it_prints_what_it_has() -> None:
    with demo("--tokens", "100") as terminal:
        for phase in ("demo: reference", "demo: spec=off: never speculates", "demo: spec=on: speculates in every"):
            terminal.wait_for(phase)
        terminal.press(b"q")
        assert terminal.wait() == ExitCode.OK
        text = terminal.after_screen
    assert re.search(r"ended early: nothing was found out about (spec=on, )?spec=auto", text)
    assert "spec=off: 26 requests × 100 tokens, outputs identical" in text
    assert "(in 26 outputs), against a reference" in text or "spec=on: 26 requests" in text


@pytest.mark.slow
def test_a_signal_ends_screen_engine_and_recording() -> None:
    with demo("--tokens", "1024") as terminal:
        terminal.wait_for("demo: reference: 8 prompts")
        terminal.kill(signal.SIGTERM)
        assert terminal.wait() == ExitCode.TERMINATED
        assert terminal.modes_on == set()
        assert terminal.attributes == terminal.before
        text = terminal.after_screen
    assert list_records() == []
    assert "Traceback" not in text
    with Recording.open(recording_of(text)) as recording:
        assert recording.info.is_finished


@pytest.mark.slow
def test_an_engine_that_is_killed_is_told_on_the_screen_and_after_it() -> None:
    """What the engine said last is not lost behind the screen."""
    with demo("--tokens", "1024") as terminal:
        terminal.wait_for("demo: reference: 8 prompts")
        (record,) = list_records()
        os.kill(record.pid, signal.SIGKILL)
        terminal.wait_for("it cannot go on")
        terminal.press(b"q")
        assert terminal.wait() == ExitCode.UNREACHABLE
        text = terminal.after_screen
    assert "the engine ended with exit code -9" in text or "a request failed" in text
    assert "the engine last said:" in text
    assert "Traceback" not in text


@pytest.mark.slow
def test_lines_on_a_terminal_when_asked_for() -> None:
    with demo("--tokens", "8", "--no-tui") as terminal:
        assert terminal.wait() == ExitCode.OK
        assert b"\x1b[?1049h" not in terminal.output
        assert b"against a reference made with spec=off" in terminal.output.replace(b"\r\n ", b"")
        assert re.search(rb"`\S+[^`\n]* attach demo-\d+` in another", terminal.output)
    assert list_records() == []


@pytest.mark.parametrize(("kind", "drawn"), [("dumb", b"False"), ("xterm-256color", b"True")])
def test_a_screen_needs_a_terminal_that_can_move_its_cursor(kind: str, drawn: bytes) -> None:
    """B110: without one the demo goes on line by line."""
    with Terminal(code="from workbench.cli.demo import has_screen; print(has_screen())", TERM=kind) as terminal:
        assert terminal.wait() == 0
        assert drawn in terminal.output
