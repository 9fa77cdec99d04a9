"""Checks a recording byte by byte: checksums, the summary against what is there, every message, every number."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from mcap.opcode import Opcode
from mcap.writer import MCAP0_MAGIC

from probes.subscriber import Malformed
from workbench.recording.channels import SCHEMA_ENCODING
from workbench.recording.chunk import ChunkContents, ChunkError
from workbench.recording.file_index import FOOTER_BYTES, body_of, record_at
from workbench.recording.reader import Recording
from workbench.recording.recording_error import RecordingError
from workbench.recording.sequence_check import SequenceCheck
from workbench.recording.side_records import MarkRecord

BLOCK = 1 << 20
_RECORD_BYTES = 9
_DATA_END = struct.Struct("<BQI")


def verify(path: Path | str) -> Iterator[str]:
    """Everything that is wrong with a recording, in words; nothing when it is sound."""
    try:
        recording = Recording.open(path)
    except RecordingError as error:
        yield str(error)
        return
    with recording:
        if recording.info.missing:
            yield recording.info.missing
        yield from _check_schemas(recording)
        yield from _check_layout(recording)
        yield from _check_messages(recording)


def _check_schemas(recording: Recording) -> Iterator[str]:
    for number, topic in recording.topics.items():
        schema = recording.index.schemas.get(recording.index.channels[number].schema_id)
        if schema is None:
            yield f"channel {topic} has no schema"
            continue
        try:
            parsed = msgspec.json.decode(schema.data, type=dict)
        except msgspec.MsgspecError:
            parsed = {}
        if schema.encoding != SCHEMA_ENCODING or parsed.get("type") != "object":
            yield f"the schema of channel {topic} is no JSON schema of an object"


def _check_layout(recording: Recording) -> Iterator[str]:
    """The records one after another: do they lead to the end, and does the summary say what is there?"""
    index, fd = recording.index, recording.fd
    chunks = dict(zip(index.offsets, range(len(index)), strict=True))
    counts: dict[int, int] = {}
    position, crc = len(MCAP0_MAGIC), zlib.crc32(MCAP0_MAGIC)
    expected_crc = _data_crc(recording)
    contents: ChunkContents | None = None
    is_readable = True
    while position < index.whole:
        try:
            opcode, length = record_at(fd, position)
        except EOFError:
            yield f"the file ends within a record, at byte {position}"
            return
        if opcode == Opcode.DATA_END:
            break
        if opcode == 0 or position + _RECORD_BYTES + length > index.whole:
            yield f"at byte {position} there is no record"
            return
        if opcode == Opcode.CHUNK:
            contents = None
            number = chunks.pop(position, None)
            if number is None:
                yield f"the chunk at byte {position} is not in the summary"
            else:
                try:
                    contents = recording.contents(number)
                except ChunkError as error:
                    is_readable = False
                    yield f"the chunk at byte {position} is {error}"
            for message in contents.messages if contents else ():
                counts[message.channel] = counts.get(message.channel, 0) + 1
        elif opcode == Opcode.MESSAGE_INDEX and contents is not None:
            channel, size = struct.unpack_from("<HI", body_of(fd, position, length))
            there = sum(message.channel == channel for message in contents.messages)
            if size // 16 != there:
                yield f"the message index at byte {position} has {size // 16} entries, its chunk {there} messages"
        if expected_crc:
            crc = _crc_of(fd, position, _RECORD_BYTES + length, crc)
        position += _RECORD_BYTES + length
    for offset in chunks:
        yield f"the summary has a chunk at byte {offset}, where there is none"
    if expected_crc and crc != expected_crc:
        yield "the checksum of the data differs: some record outside the chunks' contents is damaged"
    told = {channel: count for channel, count in index.counts.items() if count}
    if index.has_summary and is_readable and not chunks and counts != told:
        yield f"the summary counts {sum(index.counts.values())} messages, the chunks hold {sum(counts.values())}"


def _check_messages(recording: Recording) -> Iterator[str]:
    """Does every message say what its channel promises, and are the numbers complete?"""
    sequence, last_ns = SequenceCheck(), 0
    for number in range(len(recording.index)):
        try:
            messages = recording.contents(number).messages
        except ChunkError:
            continue  # named already; the numbers it held are found missing
        for message in messages:
            if message.log_ns < last_ns:
                yield f"time runs backwards by {(last_ns - message.log_ns) / 1e9:.3f} s in chunk {number}"
            last_ns = max(last_ns, message.log_ns)
            if message.channel not in recording.index.channels:
                yield f"chunk {number} has a message of channel {message.channel}, which was never declared"
            if message.channel not in recording.topics:
                continue
            item = recording.decode(message)
            if isinstance(item, MarkRecord):
                continue
            if isinstance(item, Malformed) and recording.topics[message.channel] != "malformed":
                yield item.reason
                continue
            yield from map(str, sequence.see(item))


def _data_crc(recording: Recording) -> int:
    """The checksum of everything before the summary, as written; 0 when it was not."""
    size = recording.index.size
    footer = os.pread(recording.fd, FOOTER_BYTES, max(0, size - FOOTER_BYTES - len(MCAP0_MAGIC)))
    if not recording.index.has_summary:
        return 0
    (summary_start,) = struct.unpack_from("<Q", footer, _RECORD_BYTES)
    opcode, _, crc = _DATA_END.unpack(os.pread(recording.fd, _DATA_END.size, summary_start - _DATA_END.size))
    return int(crc) if opcode == Opcode.DATA_END else 0


def _crc_of(fd: int, offset: int, length: int, crc: int) -> int:
    while length > 0:
        block = os.pread(fd, min(length, BLOCK), offset)
        if not block:
            break
        crc = zlib.crc32(block, crc)
        offset, length = offset + len(block), length - len(block)
    return crc
