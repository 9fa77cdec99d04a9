"""Reads recordings, finished or not: what is in them, in the order in which it was recorded.

Opening reads the index only; a place is found by bisection and a chunk is read when something of it is asked for.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import msgspec

from probes.events import SCHEMA_VERSION
from probes.subscriber import Gap, Malformed, Received, Restart
from workbench.recording.channels import CHANNELS, MESSAGE_ENCODING, decode
from workbench.recording.chunk import ChunkContents, ChunkError, RawMessage, chunk_records
from workbench.recording.file_index import FileIndex, body_of, read_index, record_at
from workbench.recording.part_file import is_being_written, part_of
from workbench.recording.recording_error import RecordingError
from workbench.recording.side_records import (
    GapRecord,
    MalformedRecord,
    MarkRecord,
    RecordingMark,
    RestartRecord,
    mark_of,
    received,
)
from workbench.time_text import clock_text

CACHE_BYTES = 8 << 20
MARKED = ("mark", "knob", "alert", "gap", "restart")
ABOUT, ENDED, REPAIRED = "specwb", "specwb.end", "specwb.repaired"
"""Names of the metadata records: written at the start, at the end, and by a repair."""
LOST_AT_MOST_S = 0.3


@dataclass(frozen=True)
class RecordingInfo:
    """What a recording says about itself without being read through."""

    path: Path
    bytes: int
    start: float
    """Seconds since the epoch, of the first item; ``end``: of the last."""
    end: float
    counts: dict[str, int]
    """Topic (or ``gap``, ``restart``, ``malformed``, ``mark``) -> items; those that have some."""
    boots: list[str]
    """Boot ids, in order."""
    is_finished: bool
    is_being_written: bool
    missing: str
    """What is not there, in words; empty when the recording was finished."""
    about: dict[str, str]
    """What its recorder wrote at the start: specwb, schema_version, engine, model, host, topics, note…"""
    repaired: str
    """What a repair had to leave out, in words; empty for a recording that needed none."""

    @property
    def seconds(self) -> float:
        return self.end - self.start


class Recording:
    """An open recording. A context manager; not thread-safe."""

    def __init__(self, path: Path, fd: int) -> None:
        """Use ``open``."""
        self.path = path
        self._fd = fd
        self._cache: OrderedDict[int, ChunkContents] = OrderedDict()
        self._cached_bytes = 0
        self._by_channels: dict[int, list[int]] = {}
        self._being_written = is_being_written(fd)
        self.index: FileIndex = read_index(fd, str(path))
        """Where everything stands; for checking and repairing."""
        self.topics: dict[int, str] = {
            number: channel.topic
            for number, channel in self.index.channels.items()
            if channel.topic in CHANNELS and channel.message_encoding == MESSAGE_ENCODING
        }
        """Channel number -> name, of those that this version knows."""
        self._refuse_newer()
        self.info = self._describe()

    @classmethod
    def open(cls, path: Path | str) -> Recording:
        """Open a recording, whole, cut off, or still being written (then: what is there now).

        Raises:
            RecordingError: there is none, it is none, or it was made by a newer version.
        """
        path = Path(path)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a named pipe would wait for a writer
        except FileNotFoundError:
            part = part_of(path)
            hint = f"; there is {part}, which was not finished" if os.path.exists(part) else ""
            raise RecordingError(f"there is no {path}{hint}") from None
        except OSError as error:
            raise RecordingError(f"{path} cannot be read: {error.strerror}") from None
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                raise RecordingError(f"{path} is no file, and only of a file any place can be read: copy it into one")
            return cls(path, fd)
        except BaseException as error:
            os.close(fd)
            if isinstance(error, OSError):
                raise RecordingError(f"{path} cannot be read: {error.strerror}") from None
            raise

    def items(
        self, start: float | None = None, end: float | None = None, topics: Collection[str] | None = None
    ) -> Iterator[tuple[float, Received]]:
        """Everything with start ≤ time < end, in recorded order, as (seconds since the epoch, item).

        The time is the place on the recording's axis, which never runs backwards; an event's own ``t`` may differ
        after a clock was set. A chunk that cannot be read comes as one ``Malformed``.

        Args:
            topics: only of these, where ``gap``, ``restart`` and ``malformed`` are topics too; None is everything.
        """
        wanted = self._channels(topics)
        first = 0 if start is None else bisect_left(self.index.ends, start, key=_seconds)
        for number in range(first, len(self.index)):
            if end is not None and _seconds(self.index.starts[number]) >= end:
                return
            if not self.index.masks[number] & wanted and topics is not None:
                continue
            yield from self._chunk_items(number, wanted, start, end)

    def before(self, t: float, topic: str, count: int) -> list[tuple[float, Received]]:
        """The newest ``count`` items of a topic at or before ``t``, oldest first."""
        wanted = self._channels((topic,))
        chunks = self._chunks_of(wanted)
        last = bisect_right(chunks, t, key=lambda number: _seconds(self.index.starts[number]))
        found: list[tuple[float, Received]] = []
        for number in reversed(chunks[:last]):
            if len(found) >= count:
                break
            for message in reversed(self._messages(number)):
                if len(found) >= count:
                    break
                seconds = _seconds(message.log_ns)
                if message.channel in self.topics and wanted >> message.channel & 1 and seconds <= t:
                    item = self.decode(message)
                    if not isinstance(item, MarkRecord):
                        found.append((seconds, item))
        return found[::-1]

    def times_before(self, t: float, topic: str, count: int) -> list[float]:
        """The times of what ``before`` gives; cheaper, because nothing is decoded."""
        wanted = self._channels((topic,))
        chunks = self._chunks_of(wanted)
        last = bisect_right(chunks, t, key=lambda number: _seconds(self.index.starts[number]))
        found: list[float] = []
        for number in reversed(chunks[:last]):
            if len(found) >= count:
                break
            times = (_seconds(message.log_ns) for message in self._messages(number) if wanted >> message.channel & 1)
            found += [seconds for seconds in times if seconds <= t][::-1]
        return found[:count][::-1]

    def marks(self) -> list[RecordingMark]:
        """Switches, knob changes, alerts, losses, restarts and bookmarks, in order."""
        wanted = self._channels(MARKED)
        found: list[RecordingMark] = []
        for number in self._chunks_of(wanted):
            for message in self._messages(number):
                if wanted >> message.channel & 1:
                    item = self.decode(message)
                    mark = mark_of(_seconds(message.log_ns), item)
                    if mark is not None:
                        found.append(mark)
        return found

    def lost(self) -> int:
        """Events that the recorder knows it did not get."""
        total = 0
        for _, item in self.items(topics=("gap", "malformed")):
            match item:
                case Malformed():
                    total += 1
                case Gap() if not item.recovered:
                    total += item.count
        return total

    def contents(self, number: int) -> ChunkContents:
        """A chunk's records.

        Raises:
            ChunkError: it is damaged.
        """
        if number in self._cache:
            self._cache.move_to_end(number)
            return self._cache[number]
        offset = self.index.offsets[number]
        try:
            _, length = record_at(self._fd, offset)
            contents = chunk_records(body_of(self._fd, offset, length))
        except (EOFError, OSError):
            raise ChunkError("damaged: the file ends in it, or the disk cannot read it") from None
        self._cache[number] = contents
        self._cached_bytes += contents.size
        while self._cached_bytes > CACHE_BYTES and len(self._cache) > 1:
            self._cached_bytes -= self._cache.popitem(last=False)[1].size
        return contents

    def decode(self, message: RawMessage) -> Received | MarkRecord:
        """What a message of a known channel says; ``Malformed`` when it says nothing that fits.

        Raises:
            KeyError: of an unknown channel.
        """
        topic = self.topics[message.channel]
        try:
            record = decode(topic, message.data)
        except msgspec.MsgspecError as error:
            words = f"a message of {len(message.data)} bytes is not a {topic} record: {error}"
            return Malformed(words, 0, topic, message.sequence)
        if isinstance(record, GapRecord | RestartRecord | MalformedRecord):
            return received(record)
        return record

    @property
    def fd(self) -> int:
        """The open file, for checking it byte by byte."""
        return self._fd

    def close(self) -> None:
        """Give the file back. Harmless twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- chunks -----------------------------------------------------------------------------------------------------

    def _channels(self, topics: Collection[str] | None) -> int:
        """The channels of these topics, as bits."""
        for topic in topics or ():
            if topic not in CHANNELS:
                raise ValueError(f"unknown topic {topic!r}; the topics are {', '.join(CHANNELS)}")
        return sum(1 << number for number, topic in self.topics.items() if topics is None or topic in topics)

    def _chunks_of(self, wanted: int) -> list[int]:
        """The chunks that have something of these channels."""
        if wanted not in self._by_channels:
            masks = self.index.masks
            self._by_channels[wanted] = [number for number, mask in enumerate(masks) if mask & wanted]
        return self._by_channels[wanted]

    def _messages(self, number: int) -> list[RawMessage]:
        try:
            return self.contents(number).messages
        except ChunkError:
            return []

    def _chunk_items(
        self, number: int, wanted: int, start: float | None, end: float | None
    ) -> Iterator[tuple[float, Received]]:
        try:
            messages = self.contents(number).messages
        except ChunkError as error:
            reason = f"the chunk at byte {self.index.offsets[number]} is {error}; what it held is missing"
            yield _seconds(self.index.starts[number]), Malformed(reason, 0)
            return
        for message in messages:
            if not wanted >> message.channel & 1:
                continue
            seconds = _seconds(message.log_ns)
            if (start is not None and seconds < start) or (end is not None and seconds >= end):
                continue
            item = self.decode(message)
            if not isinstance(item, MarkRecord):
                yield seconds, item

    # -- what it is -------------------------------------------------------------------------------------------------

    def _refuse_newer(self) -> None:
        about = self.index.metadata.get(ABOUT, {})
        version = about.get("schema_version", "0")
        if version.isdecimal() and int(version) > SCHEMA_VERSION:
            raise RecordingError(
                f"{self.path} was made by specwb {about.get('specwb', '(unknown)')} with event schema {version}; this "
                f"one reads up to schema {SCHEMA_VERSION}: use that version, or a newer one"
            )
        if not about and self.index.channels and not self.topics:
            names = ", ".join(sorted(channel.topic for channel in self.index.channels.values())[:5])
            raise RecordingError(f"{self.path} is an MCAP file, but not of specwb: its channels are {names}")

    def _describe(self) -> RecordingInfo:
        index, about = self.index, self.index.metadata.get(ABOUT, {})
        counts: dict[str, int] = {}
        for number, count in sorted(index.counts.items()):
            if number in index.channels:
                topic = index.channels[number].topic
                counts[topic] = counts.get(topic, 0) + count
        boots = [about["boot_id"]] if "boot_id" in about else []
        boots += [item.new_boot for _, item in self.items(topics=("restart",)) if isinstance(item, Restart)]
        start, end = (_seconds(index.starts[0]), _seconds(index.ends[-1])) if len(index) else (0.0, 0.0)
        return RecordingInfo(
            path=self.path,
            bytes=index.size,
            start=start,
            end=end,
            counts={topic: count for topic, count in counts.items() if count},
            boots=boots,
            is_finished=index.has_summary,
            is_being_written=self._being_written,
            missing="" if index.has_summary else self._missing(end),
            about=about,
            repaired=index.metadata.get(REPAIRED, {}).get("lost", ""),
        )

    def _missing(self, end: float) -> str:
        tail = self.index.size - self.index.whole
        cut = f" ({tail} bytes at its end are no whole record)" if tail else ""
        if self._being_written:
            return "not finished: it is being recorded now"
        if self.index.trouble:
            return f"{self.index.trouble}; what is before it was read{cut}"
        if not end:
            return f"not finished: it ends before the first event{cut}"
        after = clock_text(end)
        if self.path.suffix == ".part":
            return (
                f"not finished: the recorder was killed, and at most {LOST_AT_MOST_S} s after {after} are missing; "
                f"or its disk was full, and all after {after} is{cut}"
            )
        return f"cut off: all after {after} is missing{cut}"


def _seconds(ns: int) -> float:
    return ns / 1e9
