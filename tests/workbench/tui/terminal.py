"""A terminal for a program under test: a pty whose every byte is kept."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PATIENCE_S = 30.0

# Mode number -> what it does; set by ``CSI ? n h``, reset by ``CSI ? n l``.
MODES = {1000: "mouse", 1002: "mouse", 1003: "mouse", 1006: "mouse", 1004: "focus", 2004: "paste", 1049: "alternate"}


class Terminal:
    """``python -m workbench ARGS`` on a pty of the given size."""

    def __init__(self, *arguments: str, size: tuple[int, int] = (80, 24), code: str = "", **env: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.output = b""
        program = [sys.executable, *(["-c", code] if code else ["-m", "workbench"]), *arguments]
        environment = {**os.environ, "TERM": "xterm-256color", **env}
        self.process = subprocess.Popen(
            program, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=environment, start_new_session=True
        )

    def read(self, seconds: float = 0.05) -> None:
        """Take in what the program wrote."""
        while select.select([self.master], [], [], seconds)[0]:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self.output += data
            seconds = 0.0

    def wait_for(self, text: str) -> None:
        """Until the program has written that text."""
        deadline = time.monotonic() + PATIENCE_S
        while text.encode() not in self.output:
            assert time.monotonic() < deadline, f"{text!r} never came; got {self.output[-2000:]!r}"
            self.read()

    def press(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def kill(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Exit code; reads on, so that the program never blocks on a full terminal."""
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"still running; got {self.output[-2000:]!r}"
            self.read()
        self.read()
        return self.process.returncode

    @property
    def modes_on(self) -> set[str]:
        """Modes that were switched on and not off again."""
        on: set[str] = set()
        for number, what in MODES.items():
            set_at = self.output.rfind(b"\x1b[?%dh" % number)
            if set_at > self.output.rfind(b"\x1b[?%dl" % number):
                on.add(what)
        if self.output.rfind(b"\x1b[?25l") > self.output.rfind(b"\x1b[?25h"):
            on.add("hidden cursor")
        return on

    @property
    def after_screen(self) -> str:
        """What was written on the normal screen, after the alternate one was left."""
        return self.output.rpartition(b"\x1b[?1049l")[2].decode(errors="replace")

    @property
    def attributes(self) -> list[Any]:
        return termios.tcgetattr(self.slave)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            os.close(fd)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
