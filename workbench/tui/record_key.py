"""Recording from the screen: one key starts and stops it, one piece of a line says how it goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from workbench.recording.file_names import free_path
from workbench.recording.file_size import size_text
from workbench.time_text import elapsed_text
from workbench.tui.line_panel import Word


class RecordingStatus(Protocol):
    """How a recording stands."""

    @property
    def path(self) -> Path: ...
    @property
    def seconds(self) -> float: ...
    @property
    def bytes(self) -> int: ...
    @property
    def lost(self) -> int:
        """Events that the bus lost on the way into the file."""
        ...

    @property
    def error(self) -> str:
        """Why nothing is written any more; empty while all is well."""
        ...

    @property
    def is_recording(self) -> bool: ...
    @property
    def is_connected(self) -> bool:
        """The engine has answered: before that nothing is kept."""
        ...


class Recording(Protocol):
    """A recorder in a thread of its own."""

    def start(self) -> None:
        """Begin to write. Raises an OSError or a RecordingError when it cannot."""
        ...

    @property
    def status(self) -> RecordingStatus: ...

    def stop(self) -> RecordingStatus:
        """Finish the file. Takes no longer than a few seconds."""
        ...


SHORT = 30
"""Characters of an error on the status line; the message line has it whole."""
MakeRecording = Callable[[Path], Recording]


class RecordKey:
    """At most one recording at a time. Starting and finishing may touch a slow disk, so both run beside the screen."""

    def __init__(self, engine: str, make: MakeRecording | None, wall: Callable[[], float] = time.time) -> None:
        """``make`` is None where there is nothing to record, as in a replay."""
        self._engine = engine
        self._make = make
        self._wall = wall
        self._recording: Recording | None = None
        self._busy: threading.Thread | None = None
        self._news: list[tuple[str, str]] = []
        self._told = False  # that the present recording has failed
        self.finished: list[RecordingStatus] = []
        """Recordings of this session that have ended, in order."""

    @property
    def is_available(self) -> bool:
        return self._make is not None

    @property
    def is_on(self) -> bool:
        """A recording was begun and not stopped; it may have failed."""
        return self._recording is not None

    def toggle(self) -> str:
        """Start or stop; what to tell the person right away."""
        if self._make is None:
            return "there is nothing to record here"
        if self._busy is not None and self._busy.is_alive():
            return "the disk is slow; one moment"
        if self._recording is not None:
            self._run(self._stop)
            return "finishing the recording …"
        self._run(self._start)
        return "starting to record …"

    def take_news(self) -> list[tuple[str, str]]:
        """(text, role) of what happened since the last call."""
        recording = self._recording
        if recording is not None and not self._told and recording.status.error:
            self._told = True
            self._news.append((f"NOT RECORDING: {recording.status.error}", "bad"))
        news, self._news = self._news, []
        return news

    def words(self) -> list[Word]:
        """The state of the recording for a status line; nothing when there is none."""
        if self._recording is None:
            return []
        status = self._recording.status
        if not status.is_recording or status.error:
            why = status.error.removeprefix("recording stopped: ").partition(";")[0] or "it ended"
            return [(f" NOT RECORDING: {why[:SHORT]} ", "badge:bad")]
        if not status.is_connected:
            return [(" REC ", "badge:warn"), (" waits for the engine", "dim")]
        lost = f" lost {status.lost}" if status.lost else ""
        return [
            (" REC ", "badge:bad"),
            (f" {elapsed_text(status.seconds)} {size_text(status.bytes)}", "text"),
            (lost, "bad"),
        ]

    def finish(self) -> None:
        """Stop whatever still records, and wait for it: the screen is gone."""
        if self._busy is not None:
            self._busy.join(5.0)
        if self._recording is not None:
            self._stop()

    def report(self) -> list[str]:
        """After the screen: where each recording is, and what is missing in it."""
        return [ended_text(status) for status in self.finished]

    @property
    def has_failed(self) -> bool:
        """A recording that was asked for is not whole."""
        return any(status.error or status.lost for status in self.finished)

    def _run(self, act: Callable[[], None]) -> None:
        self._busy = threading.Thread(target=act, name="record-key", daemon=True)
        self._busy.start()

    def _start(self) -> None:
        assert self._make is not None
        try:
            path = free_path(self._engine, Path.cwd(), self._wall())
            recording = self._make(path)
            recording.start()
        except (OSError, RuntimeError) as error:
            self._news.append((f"NOT RECORDING: {error}", "bad"))
            return
        self._recording, self._told = recording, False
        self._news.append((f"recording to {path.name} in {path.parent}; r stops", "good"))

    def _stop(self) -> None:
        recording, self._recording = self._recording, None
        if recording is None:
            return
        status = recording.stop()
        self.finished.append(status)
        self._news.append((ended_text(status), "bad" if status.error or status.lost else "good"))


def ended_text(status: RecordingStatus) -> str:
    """Where the recording is, how much it holds, and what it lacks."""
    if status.error:
        return status.error
    what = f"recorded {elapsed_text(status.seconds)} ({size_text(status.bytes)}) to {status.path}"
    return f"{what}; {status.lost} events were lost on the way" if status.lost else what
