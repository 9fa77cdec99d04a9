"""Makes a whole recording of one that was cut off or damaged. The original is never touched."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mcap.records import Channel

from probes.subscriber import Malformed
from workbench.recording.channels import CHANNELS, MESSAGE_ENCODING, SCHEMA_ENCODING, encode, schema_of
from workbench.recording.chunk import ChunkError, RawMessage
from workbench.recording.mcap_sink import McapSink
from workbench.recording.reader import REPAIRED, Recording
from workbench.recording.recording_error import RecordingError
from workbench.recording.sequence_check import Hole, Misplaced, SequenceCheck, Unannounced
from workbench.recording.side_records import GapRecord, MarkRecord, RestartRecord


@dataclass(frozen=True)
class Repair:
    """What a repair did."""

    path: Path
    saved: int
    """Messages that are in the new file."""
    dropped: int
    """Messages that could not be read, or stood where they cannot be."""
    chunks_lost: int
    bytes_lost: int
    """At the end of the file, after the last whole record."""
    events_missing: int
    """Numbers that nobody had noted as missing; the new file does."""

    @property
    def lost_text(self) -> str:
        """What is not in the new file, in words."""
        parts = [
            f"{self.chunks_lost} damaged chunks" if self.chunks_lost else "",
            f"{self.dropped} unreadable messages" if self.dropped else "",
            f"{self.events_missing} events, now noted as a gap" if self.events_missing else "",
            f"{self.bytes_lost} bytes of an unfinished record at the end" if self.bytes_lost else "",
        ]
        return ", ".join(part for part in parts if part) or "nothing but what had not reached the file"


def repaired_path(path: Path) -> Path:
    """``x.repaired.mcap`` for ``x.mcap`` and for ``x.mcap.part``."""
    return path.parent / (path.name.removesuffix(".part").removesuffix(".mcap") + ".repaired.mcap")


def repair(path: Path, target: Path) -> Repair:
    """Copy what can be read into ``target``, and finish that.

    Raises:
        RecordingError: there is nothing to read, it is being written, or the target cannot be made.
    """
    with Recording.open(path) as recording:
        if recording.info.is_being_written:
            raise RecordingError(f"{path} is being recorded now; stop the recorder first (Ctrl-C finishes the file)")
        if not len(recording.index):
            raise RecordingError(f"{path} has no whole chunk: there is nothing to save")
        sink = McapSink(target, "specwb repair")
        try:
            result = _Copy(recording, sink).run(path, target)
            if not result.saved:
                raise RecordingError(f"{path} has no message that can be read: there is nothing to save")
            sink.finish()
        except OSError as error:
            sink.file.discard()
            raise RecordingError(f"{target} cannot be written: {error.strerror}") from None
        except BaseException:
            sink.file.discard()
            raise
    return result


class _Copy:
    """One recording on its way into a new file."""

    def __init__(self, recording: Recording, sink: McapSink) -> None:
        self._recording = recording
        self._sink = sink
        self._sequence = SequenceCheck()
        self._saved = self._dropped = self._missing = self._chunks_lost = 0
        self._last_ns = 0
        self._numbers = {number: self._declare(channel) for number, channel in recording.index.channels.items()}
        self._sides = {
            recording.index.channels[number].topic: self._numbers[number]
            for number in recording.topics
            if recording.topics[number] in ("gap", "restart")
        }

    def run(self, path: Path, target: Path) -> Repair:
        index = self._recording.index
        for name, fields in index.metadata.items():
            self._sink.metadata(name, fields)
        for number in range(len(index)):
            try:
                messages = self._recording.contents(number).messages
            except ChunkError:
                self._chunks_lost += 1
                continue
            for message in messages:
                self._copy(message)
        result = Repair(
            path=target,
            saved=self._saved,
            dropped=self._dropped,
            chunks_lost=self._chunks_lost,
            bytes_lost=index.size - index.whole,
            events_missing=self._missing,
        )
        self._sink.flush()
        why = self._recording.info.missing
        self._sink.metadata(REPAIRED, {"from": path.name, "why": why, "lost": result.lost_text})
        return result

    def _declare(self, channel: Channel) -> int:
        schema = self._recording.index.schemas.get(channel.schema_id)
        name, encoding, data = (schema.name, schema.encoding, schema.data) if schema else ("", "", b"")
        return self._sink.channel(channel.topic, channel.message_encoding, name, encoding, data)

    def _copy(self, message: RawMessage) -> None:
        number = self._numbers.get(message.channel)
        if number is None:
            self._dropped += 1
            return
        place = self._last_ns = max(self._last_ns, message.log_ns)
        topic = self._recording.topics.get(message.channel)
        if topic is not None:
            item = self._recording.decode(message)
            if isinstance(item, MarkRecord):
                pass
            elif isinstance(item, Malformed) and topic != "malformed":
                self._dropped += 1
                return
            else:
                for oddity in self._sequence.see(item):
                    if isinstance(oddity, Misplaced):
                        self._dropped += 1
                        return
                    self._note(oddity, place)
        self._sink.message(number, place, message.publish_ns, message.sequence, bytes(message.data))
        self._saved += 1

    def _note(self, oddity: Hole | Unannounced, place: int) -> None:
        if isinstance(oddity, Unannounced):
            restart = RestartRecord(old_boot=oddity.old_boot, new_boot=oddity.new_boot)
            self._sink.message(self._side("restart"), place, place, 0, encode(restart))
            return
        self._missing += oddity.count
        gap = GapRecord(
            boot_id=oddity.boot_id, topic=oddity.topic, first=oddity.first, last=oddity.last, recovered=False
        )
        self._sink.message(self._side("gap"), place, place, 0, encode(gap))

    def _side(self, topic: str) -> int:
        if topic not in self._sides:
            name = f"specwb.{CHANNELS[topic].__name__}"
            self._sides[topic] = self._sink.channel(topic, MESSAGE_ENCODING, name, SCHEMA_ENCODING, schema_of(topic))
        return self._sides[topic]
