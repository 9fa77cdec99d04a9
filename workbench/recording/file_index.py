"""Where things stand in an MCAP file: from its summary if it has one, else by going from record to record.

Neither reads what is inside the chunks (a cut file's first one apart), so a recording of a million steps opens in a
fraction of a second. The library's reader makes an object of every number and would take several.
"""

from __future__ import annotations

import os
import struct
import zlib
from array import array
from dataclasses import dataclass, field
from io import BytesIO

from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Header, Metadata, Schema
from mcap.writer import MCAP0_MAGIC

from workbench.recording.chunk import ChunkError, chunk_records
from workbench.recording.recording_error import RecordingError

_RECORD = struct.Struct("<BQ")
_FOOTER = struct.Struct("<QQI")
_TIMES = struct.Struct("<QQQQ")
_U16_U32 = struct.Struct("<HI")
FOOTER_BYTES = _RECORD.size + _FOOTER.size
SANE_BYTES = 1 << 30
"""A record that claims more and is not skipped is damage, not data: nothing of that size is read into memory."""


@dataclass
class FileIndex:
    """Chunks by number, in the order of the file; times in ns."""

    size: int
    """Bytes of the file when it was opened."""
    header: Header | None = None
    starts: array[int] = field(default_factory=lambda: array("Q"))
    ends: array[int] = field(default_factory=lambda: array("Q"))
    offsets: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("Q"))
    masks: list[int] = field(default_factory=list)
    """Bit i: the chunk has messages of channel i."""
    channels: dict[int, Channel] = field(default_factory=dict)
    schemas: dict[int, Schema] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    """Channel -> messages."""
    metadata: dict[str, dict[str, str]] = field(default_factory=dict)
    has_summary: bool = False
    whole: int = 0
    """Bytes up to the end of the last whole record."""
    trouble: str = ""
    """Why there is no summary, when that is not because the file ends early."""

    def __len__(self) -> int:
        return len(self.offsets)

    def add_chunk(self, start: int, end: int, offset: int, length: int, mask: int) -> None:
        self.starts.append(start)
        self.ends.append(end)
        self.offsets.append(offset)
        self.lengths.append(length)
        self.masks.append(mask)


def read_index(fd: int, name: str) -> FileIndex:
    """The index of an open file, finished or not.

    Raises:
        RecordingError: it is no MCAP file, or holds nothing.
    """
    size = os.fstat(fd).st_size
    if size == 0:
        raise RecordingError(f"{name} is empty: nothing had been written yet")
    magic = os.pread(fd, len(MCAP0_MAGIC), 0)
    if magic != MCAP0_MAGIC[: len(magic)]:
        raise RecordingError(f"{name} is no recording: it does not begin as an MCAP file does")
    index = FileIndex(size, whole=min(size, len(MCAP0_MAGIC)))
    try:
        if _read_summary(fd, index):
            return index
        trouble = index.trouble
    except (McapError, struct.error, ValueError, IndexError, EOFError):
        trouble = "its summary is damaged"
    index = FileIndex(size, whole=min(size, len(MCAP0_MAGIC)), trouble=trouble)
    _scan(fd, index)
    return index


def record_at(fd: int, offset: int) -> tuple[int, int]:
    """Opcode and body length of the record that begins there.

    Raises:
        EOFError: the file ends in it.
    """
    head = os.pread(fd, _RECORD.size, offset)
    if len(head) < _RECORD.size:
        raise EOFError
    opcode, length = _RECORD.unpack(head)
    return opcode, length


def body_of(fd: int, offset: int, length: int) -> bytes:
    """The body of the record that begins there.

    Raises:
        EOFError: the file ends in it, or the length cannot be true.
    """
    body = os.pread(fd, length, offset + _RECORD.size) if length <= SANE_BYTES else b""
    if len(body) < length:
        raise EOFError
    return body


def _read_summary(fd: int, index: FileIndex) -> bool:
    """Fill the index from the summary; False when there is none, or none that can be trusted."""
    tail_at = index.size - FOOTER_BYTES - len(MCAP0_MAGIC)
    tail = os.pread(fd, FOOTER_BYTES + len(MCAP0_MAGIC), max(0, tail_at))
    if tail_at < 0 or tail[FOOTER_BYTES:] != MCAP0_MAGIC:
        return False
    opcode, length = _RECORD.unpack_from(tail)
    if opcode != Opcode.FOOTER or length != _FOOTER.size:
        return False
    summary_start, _, crc = _FOOTER.unpack_from(tail, _RECORD.size)
    if not summary_start or summary_start > tail_at or tail_at - summary_start > SANE_BYTES:
        index.trouble = "it has no summary"
        return False
    summary = os.pread(fd, tail_at - summary_start, summary_start)
    if crc and zlib.crc32(tail[: FOOTER_BYTES - 4], zlib.crc32(summary)) != crc:
        index.trouble = "its summary is damaged"
        return False
    position = 0
    while position < len(summary):
        opcode, length = _RECORD.unpack_from(summary, position)
        position += _RECORD.size
        _take_summary_record(fd, index, opcode, summary, position, length)
        position += length
    opcode, length = record_at(fd, len(MCAP0_MAGIC))
    index.header = Header.read(_stream(body_of(fd, len(MCAP0_MAGIC), length)))
    index.has_summary = True
    index.whole = index.size
    return True


def _take_summary_record(fd: int, index: FileIndex, opcode: int, summary: bytes, at: int, length: int) -> None:
    if opcode == Opcode.CHUNK_INDEX:
        start, end, offset, chunk_length = _TIMES.unpack_from(summary, at)
        (entries,) = struct.unpack_from("<I", summary, at + 32)
        mask = 0
        for entry in range(at + 36, at + 36 + entries, 10):
            mask |= 1 << (summary[entry] | summary[entry + 1] << 8)
        index.add_chunk(start, end, offset, chunk_length, mask)
    elif opcode == Opcode.CHANNEL:
        channel = Channel.read(_stream(summary[at : at + length]))
        index.channels[channel.id] = channel
    elif opcode == Opcode.SCHEMA:
        schema = Schema.read(_stream(summary[at : at + length]))
        index.schemas[schema.id] = schema
    elif opcode == Opcode.STATISTICS:
        (entries,) = struct.unpack_from("<I", summary, at + 42)
        for entry in range(at + 46, at + 46 + entries, 10):
            channel_id, count = struct.unpack_from("<HQ", summary, entry)
            index.counts[channel_id] = count
    elif opcode == Opcode.METADATA_INDEX:
        (offset,) = struct.unpack_from("<Q", summary, at)
        _, body_length = record_at(fd, offset)
        metadata = Metadata.read(_stream(body_of(fd, offset, body_length)))
        index.metadata[metadata.name] = metadata.metadata


def _scan(fd: int, index: FileIndex) -> None:
    """Fill the index from the records, up to the last whole one."""
    position = index.whole
    in_chunk = -1  # the chunk whose message indexes follow
    try:
        while True:
            opcode, length = record_at(fd, position)
            after = position + _RECORD.size + length
            if opcode == 0 or after > index.size:
                break
            if opcode == Opcode.CHUNK:
                _learn_channels(fd, index, in_chunk)
                start, end = struct.unpack("<QQ", os.pread(fd, 16, position + _RECORD.size))
                index.add_chunk(start, end, position, _RECORD.size + length, 0)
                in_chunk = len(index) - 1
            elif opcode == Opcode.MESSAGE_INDEX and in_chunk >= 0:
                channel, entries = _U16_U32.unpack(os.pread(fd, _U16_U32.size, position + _RECORD.size))
                index.masks[in_chunk] |= 1 << channel
                index.counts[channel] = index.counts.get(channel, 0) + entries // 16
            elif opcode in (Opcode.HEADER, Opcode.METADATA):
                body = _stream(body_of(fd, position, length))
                if opcode == Opcode.HEADER:
                    index.header = Header.read(body)
                else:
                    metadata = Metadata.read(body)
                    index.metadata[metadata.name] = metadata.metadata
            elif opcode in (Opcode.DATA_END, Opcode.FOOTER):
                break
            position = after
            index.whole = position
    except (EOFError, McapError, struct.error, ValueError):
        pass  # what follows cannot be read: the file ends here
    _learn_channels(fd, index, in_chunk, is_last=True)


def _learn_channels(fd: int, index: FileIndex, chunk: int, *, is_last: bool = False) -> None:
    """Look into a chunk if it has messages of channels that are not known yet, or if its own index is cut off."""
    if chunk < 0:
        return
    indexed, mask = index.masks[chunk], 0
    unknown = any(indexed >> channel & 1 and channel not in index.channels for channel in range(indexed.bit_length()))
    if not unknown and not is_last and indexed:
        return
    try:
        body = body_of(fd, index.offsets[chunk], index.lengths[chunk] - _RECORD.size)
        contents = chunk_records(body)
    except (ChunkError, EOFError):
        return
    for channel in contents.channels:
        index.channels.setdefault(channel.id, channel)
    for schema in contents.schemas:
        index.schemas.setdefault(schema.id, schema)
    counts: dict[int, int] = {}
    for message in contents.messages:
        mask |= 1 << message.channel
        counts[message.channel] = counts.get(message.channel, 0) + 1
    for channel_id, count in counts.items():
        if not indexed >> channel_id & 1:
            index.counts[channel_id] = index.counts.get(channel_id, 0) + count
    index.masks[chunk] = indexed | mask


def _stream(body: bytes) -> ReadDataStream:
    return ReadDataStream(BytesIO(body))
