"""Records an engine's bus into a file, in a thread of its own: the screen, or a command, only asks how it goes.

The engine never waits for it. A restart of the engine is a mark in the file; a full disk ends the recording, says so,
and leaves a file that can be read up to its last whole record.
"""

from __future__ import annotations

import errno
import math
import queue
import threading
import time
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from probes.discovery import EngineRecord
from probes.errors import ProbeError
from probes.events import TOPICS
from probes.subscriber import Subscriber
from workbench.recording.channels import ALWAYS, DEFAULT_TOPICS
from workbench.recording.part_file import part_of
from workbench.recording.recording_error import RecordingError
from workbench.recording.writer import RecordingWriter

FLUSH_S = 0.25
"""Nothing that has arrived waits longer for the disk."""
SYNC_S = 3.0
PAUSE_S = 0.02
"""Between two looks at the socket: what comes meanwhile is taken together, for a third of the cost."""
POLL_S = 0.1
RETRY_S = 0.3
DISK_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is as large as it may become",
}
CONNECT_S = 2.0


@dataclass(frozen=True)
class RecorderStatus:
    """How a recording goes, or went."""

    path: Path
    """The recording; while it is made, and after an error, it stands in ``PATH.part``."""
    seconds: float
    bytes: int
    events: int
    lost: int
    """Events missed for good, or unreadable."""
    error: str
    """Why recording stopped or could not be finished; empty when all is well."""
    is_recording: bool
    is_connected: bool
    """The engine has answered at least once; without that nothing is kept."""


class Recorder:
    """One recording of one engine."""

    def __init__(
        self,
        record: EngineRecord,
        path: Path,
        topics: Collection[str] = DEFAULT_TOPICS,
        *,
        note: str = "",
        with_requests: bool = False,
    ) -> None:
        """``topics``: those of the bus; hello, knob and alert are always recorded. ``with_requests``: the request topic
        too, with token ids, so that the recording can be run again.

        Raises:
            ValueError: an unknown topic.
        """
        unknown = set(topics) - set(TOPICS)
        if unknown:
            raise ValueError(f"unknown topic {min(unknown)!r}; the topics are {', '.join(TOPICS)}")
        self.path = Path(path)
        self._record = record
        self._topics = sorted({*topics, *ALWAYS, *(("request",) if with_requests else ())})
        self._with_requests = with_requests
        self._note = note
        self._writer: RecordingWriter | None = None
        self._started_at = time.monotonic()
        self._seconds = 0.0
        self._bytes = 0
        self._error = ""
        self._connected = False
        self._wishes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._stop = threading.Event()
        # A daemon: a thread that hangs in a dying connection must not keep the process.
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    def start(self) -> None:
        """Make the file and begin; returns at once, whether the engine answers or not.

        Raises:
            RecordingError: the file cannot be made; says why.
        """
        self._writer = RecordingWriter(self.path, self._topics, note=self._note, with_requests=self._with_requests)
        self._started_at = time.monotonic()
        self._thread.start()

    @property
    def status(self) -> RecorderStatus:
        """As of now; from any thread."""
        writer, is_recording = self._writer, self._thread.is_alive() and not self._error
        return RecorderStatus(
            path=self.path,
            seconds=time.monotonic() - self._started_at if is_recording else self._seconds,
            bytes=writer.sink.file.tell() if writer is not None and is_recording else self._bytes,
            events=writer.events if writer is not None else 0,
            lost=writer.lost if writer is not None else 0,
            error=self._error,
            is_recording=is_recording,
            is_connected=self._connected,
        )

    def bookmark(self, text: str) -> None:
        """Mark this place in the recording."""
        self._wishes.put(text)

    def stop(self, timeout: float = 15.0) -> RecorderStatus:
        """Finish the file and say how it went. Harmless twice."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
            if self._thread.is_alive():
                self._error = self._error or f"the disk has not taken the end of the recording within {timeout:g} s"
        return self.status

    # -- in the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        writer = self._writer
        assert writer is not None
        syncer = _Syncer(writer)
        try:
            try:
                while not self._stop.is_set():
                    self._follow(writer, syncer)
            finally:
                syncer.close()
            self._finish(writer)
        except Exception as error:
            self._give_up(writer, error)
        finally:
            self._seconds = time.monotonic() - self._started_at

    def _follow(self, writer: RecordingWriter, syncer: _Syncer) -> None:
        """Connect, then record until told to stop."""
        try:
            subscriber = Subscriber(
                self._record, self._topics, who=f"record {self._record.name}", timeout=CONNECT_S, hwm=10_000
            )
        except ProbeError:
            self._stop.wait(RETRY_S)
            return
        with subscriber:
            if not self._connected:
                writer.begin(subscriber.hello)
                writer.sink.flush()
                self._connected = True
            due = math.inf  # when the oldest event that is not on the disk has to be
            while not self._stop.wait(PAUSE_S):
                is_urgent = False
                for item in subscriber.poll(max(0.0, min(POLL_S, due - time.monotonic()))):
                    is_urgent |= writer.write(item)
                    due = min(due, time.monotonic() + FLUSH_S - PAUSE_S)
                while not self._wishes.empty():
                    writer.bookmark(self._wishes.get())
                    is_urgent = True
                if is_urgent or time.monotonic() >= due:
                    writer.sink.flush()
                    due = math.inf
                syncer.check()
            for item in subscriber.poll(0):
                writer.write(item)

    def _finish(self, writer: RecordingWriter) -> None:
        if not self._connected:
            writer.sink.file.discard()
            self._error = f"nothing was recorded: {self._record.name} did not answer"
            return
        while not self._wishes.empty():
            writer.bookmark(self._wishes.get())
        writer.finish()
        self._bytes = writer.sink.whole

    def _give_up(self, writer: RecordingWriter, error: Exception) -> None:
        match error:
            case OSError():
                why = DISK_WORDS.get(error.errno or 0, f"the disk failed ({error.strerror or error})")
            case RecordingError():
                why = str(error)
            case _:
                place = traceback.extract_tb(error.__traceback__)[-1]
                name = f"{type(error).__name__}: {error}"
                why = f"a bug in specwb, {name} ({Path(place.filename).name}:{place.lineno})"
        try:
            writer.sink.abandon()
        except OSError as second:
            why += f"; and its end could not be cut clean ({second.strerror})"
        self._bytes = writer.sink.whole
        kept = f"what came before is in {part_of(self.path)}" if self._connected else "nothing was recorded"
        self._error = f"recording stopped: {why}; {kept}"


class _Syncer:
    """Has the disk keep the file now and then, in a thread of its own: that may take seconds, and must not hold up a
    flush."""

    def __init__(self, writer: RecordingWriter) -> None:
        self._writer = writer
        self._error: OSError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recorder-sync", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises the OSError of a sync that failed."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        synced = 0
        while not self._stop.wait(SYNC_S):
            size = self._writer.sink.file.tell()
            if size == synced:
                continue
            try:
                self._writer.sink.file.sync()
            except OSError as error:
                self._error = error
                return
            synced = size
