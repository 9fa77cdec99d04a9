"""The terminal is given back as it was, however the screen ends; only SIGKILL can prevent that (then: ``reset``)."""

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NoReturn

ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

PATIENCE_S = 8.0
"""A program that has not ended so long after a signal is ended: its drawing can block for good on a closed terminal."""

MODES_OFF = (
    "\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"  # mouse reporting
    "\x1b[?1004l"  # focus reports
    "\x1b[?2004l"  # bracketed paste
    "\x1b[?2048l"  # in-band resize reports
    "\x1b[?2026l"  # synchronized output
    "\x1b[<u"  # kitty's keyboard protocol
    "\x1b[?7h"  # line wrap
    "\x1b[?1049l"  # alternate screen
    "\x1b[?25h\x1b[0m"  # cursor, colours
)


class TerminalGuard:
    """Around a full-screen program: the first ending signal asks it to end; a second one, or time, ends it.

    ``leave(code)`` is called in the main thread, between two bytecodes, and must only ask the program to end.
    """

    def __init__(self, leave: Callable[[int], None]) -> None:
        self._leave = leave
        self._fd = sys.stdin.fileno()
        self._attributes: list[Any] | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        self._deadline: threading.Timer | None = None
        self.signalled: int | None = None
        """Exit code of the signal that ended the program: 128 + its number."""

    def __enter__(self) -> TerminalGuard:
        self._attributes = termios.tcgetattr(self._fd)
        for number in ENDING:
            self._handlers[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self._deadline is not None:
            self._deadline.cancel()
        self._restore(modes=kind is not None)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        code = 128 + number
        if self.signalled is not None:
            self._end(code)  # asked twice
        self.signalled = code
        self._deadline = threading.Timer(PATIENCE_S, self._end, (code,))
        self._deadline.daemon = True
        self._deadline.start()
        self._leave(code)

    def _end(self, code: int) -> NoReturn:
        """The program hangs. Nothing of it runs any more after this."""
        self._restore(modes=True)
        os._exit(code)

    def _restore(self, modes: bool) -> None:
        """Line settings always; the modes only where the program did not switch them off itself."""
        try:
            if modes:
                os.write(sys.__stdout__.fileno() if sys.__stdout__ else 1, MODES_OFF.encode())
            if self._attributes is not None:
                termios.tcsetattr(self._fd, termios.TCSANOW, self._attributes)
        except (OSError, termios.error):
            pass  # the terminal is gone: there is nothing to give back
