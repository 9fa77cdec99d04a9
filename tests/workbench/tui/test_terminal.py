"""The terminal is intact after every kind of end. On a pty, with the real command and a real bus."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.workbench.made_engine import MadeEngine
from tests.workbench.tui.terminal import Terminal


def assert_intact(terminal: Terminal) -> None:
    assert b"\x1b[?1049h" in terminal.output, "the screen never came up"
    assert terminal.modes_on == set()
    assert terminal.attributes == terminal.before


@pytest.mark.parametrize("keys", [b"q", b"\x11", b"\x03"], ids=["q", "ctrl-q", "ctrl-c"])
def test_quit_keys_leave_the_terminal_as_it_was(engine: MadeEngine, keys: bytes) -> None:
    """B107, B109: also raw 0x03."""
    with Terminal("attach", "made") as terminal:
        terminal.wait_for("IDLE")
        terminal.press(keys)
        assert terminal.wait() == 0
        assert_intact(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_the_terminal_as_it_was(engine: MadeEngine, number: signal.Signals) -> None:
    """B107, B109."""
    with Terminal("attach", "made") as terminal:
        terminal.wait_for("IDLE")
        terminal.kill(number)
        assert terminal.wait() == 128 + number
        assert_intact(terminal)


@pytest.mark.parametrize("rate", [0, 2000], ids=["silent", "flood"])
def test_quit_within_two_seconds(engine: MadeEngine, rate: int) -> None:
    """B111: the time includes the interpreter's own end; the deadline leaves room for a busy machine."""
    with Terminal("attach", "made") as terminal:
        terminal.wait_for("IDLE")
        for _ in range(rate):
            engine.step()
        terminal.press(b"q")
        asked = time.monotonic()
        for _ in range(rate):
            engine.step()
        assert terminal.wait() == 0
        assert time.monotonic() - asked < 10.0
        assert_intact(terminal)


def test_suspended_for_a_flood_and_continued(engine: MadeEngine) -> None:
    """B112: ctrl-z gives the terminal back and stops; the engine does not notice; then the screen comes back and tells
    what it missed."""
    with Terminal("attach", "made") as terminal:
        terminal.wait_for("IDLE")
        terminal.press(b"\x1a")
        until_state(terminal, "T")
        terminal.read()
        assert terminal.modes_on == set()
        assert terminal.attributes == terminal.before
        seen = len(terminal.output)
        memory = resident_mb(terminal)
        for _ in range(20_000):
            engine.step()
        assert state_of(terminal) == "T"
        terminal.kill(signal.SIGCONT)
        deadline = time.monotonic() + 30
        newest: list[bytes] = []  # what came after the flood is live again
        while not any(b"step " + step in said(terminal, seen) for step in newest):
            assert time.monotonic() < deadline, said(terminal, seen)[-2000:]
            newest.append(b"%d" % engine.step())
            terminal.read(0.3)
        assert b"\x1b[?1049h" in terminal.output[seen:]
        assert resident_mb(terminal) < memory + 150
        terminal.press(b"q")
        assert terminal.wait() == 0
        assert_intact(terminal)


def test_after_a_suspension_lines_that_did_not_change_are_drawn_too(engine: MadeEngine) -> None:
    with Terminal("attach", "made") as terminal:
        terminal.wait_for("IDLE")
        terminal.press(b"\x1a")
        until_state(terminal, "T")
        terminal.read()
        seen = len(terminal.output)
        terminal.kill(signal.SIGCONT)
        deadline = time.monotonic() + 30
        while not all(words in said(terminal, seen) for words in (b"Is speculation winning now?", b"2 steps", b"Quit")):
            assert time.monotonic() < deadline, said(terminal, seen)[-2000:]
            terminal.read(0.3)


def said(terminal: Terminal, since: int) -> bytes:
    """What was written, without its escape sequences."""
    return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", terminal.output[since:])


def state_of(terminal: Terminal) -> str:
    """The kernel's letter for the process: R, S, T (stopped)…"""
    return Path(f"/proc/{terminal.process.pid}/stat").read_text().rpartition(") ")[2][0]


def until_state(terminal: Terminal, letter: str) -> None:
    deadline = time.monotonic() + 30
    while state_of(terminal) != letter:
        assert time.monotonic() < deadline
        terminal.read()


def resident_mb(terminal: Terminal) -> float:
    pages = int(Path(f"/proc/{terminal.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


CRASH = """
import sys
from workbench.tui import app
from workbench.cli import main

def broken(self):
    raise RuntimeError("the cause of it all")

setattr(app.AttachApp, {method!r}, broken)
sys.exit(main(["attach", "made"]))
"""


@pytest.mark.parametrize("method", ["on_mount", "tick"])
def test_exception_is_readable_after_the_end(engine: MadeEngine, method: str, runtime_dir: Path) -> None:
    """B116, B107: the cause on the normal screen, the trace in a file that is named, the terminal intact."""
    with Terminal(code=CRASH.format(method=method)) as terminal:
        assert terminal.wait() == 70
        assert_intact(terminal)
        words = " ".join(terminal.after_screen.split())
        assert "the screen ended with RuntimeError: the cause of it all" in words
        log = runtime_dir / "cache" / "specwb" / "attach-crash.log"
        assert str(log) in words
        assert "RuntimeError: the cause of it all" in log.read_text()


HANG = """
import os, sys, time
from workbench.tui import app
from workbench.cli import main

def hang(self):
    os.write(1, b"hangs now")  # past the screen, which takes what is written to the streams
    while True:
        time.sleep(0.05)

app.AttachApp.on_step_table_selected = lambda self, message: hang(self)
sys.exit(main(["attach", "made"]))
"""


def make_it_hang(terminal: Terminal, engine: MadeEngine) -> None:
    """Select a row, once there is one."""
    terminal.wait_for("\x1b[?1049h")
    terminal.wait_for("overview")
    terminal.press(b"2")
    deadline = time.monotonic() + 30
    while b"hangs now" not in terminal.output:
        assert time.monotonic() < deadline
        engine.step()
        terminal.press(b"k")
        terminal.read(0.3)


def test_hanging_screen_ends_at_the_second_signal(engine: MadeEngine) -> None:
    """B107: even then the terminal is given back."""
    with Terminal(code=HANG) as terminal:
        make_it_hang(terminal, engine)
        terminal.kill(signal.SIGTERM)
        deadline = time.monotonic() + 30
        while terminal.process.poll() is None:
            assert time.monotonic() < deadline
            terminal.kill(signal.SIGTERM)
            terminal.read(0.3)
        assert terminal.wait() == 143
        assert_intact(terminal)


def test_hanging_screen_ends_some_time_after_one_signal(engine: MadeEngine) -> None:
    """B109: nobody sends a second signal to a screen whose terminal was closed."""
    with Terminal(code=HANG) as terminal:
        make_it_hang(terminal, engine)
        terminal.kill(signal.SIGHUP)
        assert terminal.wait() == 129
        assert_intact(terminal)


def test_no_colour_reaches_the_terminal_with_no_color(engine: MadeEngine) -> None:
    """B108."""
    with Terminal("attach", "made", NO_COLOR="1") as terminal:
        terminal.wait_for("IDLE")
        terminal.press(b"q")
        assert terminal.wait() == 0
        assert coloured(terminal.output.decode(errors="replace")) == []


def coloured(output: str) -> list[str]:
    """Escape sequences that choose a colour; 39 and 49, the terminal's own, do not."""
    found: list[str] = []
    for parameters in re.findall(r"\x1b\[([\d;]*)m", output):
        numbers = [int(number) for number in parameters.split(";") if number]
        if any(30 <= n <= 38 or 40 <= n <= 48 or 90 <= n <= 97 or 100 <= n <= 107 for n in numbers):
            found.append(parameters)
    return found


@pytest.mark.parametrize("term", ["dumb", ""])
def test_terminal_that_cannot_draw_is_told_about_tail(term: str) -> None:
    """B108, B110."""
    with Terminal("attach", "made", TERM=term) as terminal:
        assert terminal.wait() == 2
        assert b"specwb tail made" in terminal.output
        assert b"\x1b" not in terminal.output
