"""The inside of one chunk of an MCAP file: checked, decompressed, split into records, nothing decoded yet."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from typing import NamedTuple

import lz4.frame
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.records import Channel, Schema

_HEAD = struct.Struct("<QQQI")
_RECORD = struct.Struct("<BQ")
_MESSAGE = struct.Struct("<HIQQ")
MOST_BYTES = 1 << 28
"""Of one chunk, decompressed. Ours have 1 MiB; one that claims more than this is not believed."""


class ChunkError(Exception):
    """A chunk cannot be read; says why."""


class RawMessage(NamedTuple):
    """One message, its JSON still encoded. Times in ns."""

    channel: int
    sequence: int
    log_ns: int
    publish_ns: int
    data: memoryview


class ChunkContents(NamedTuple):
    """All of a chunk's records, in order."""

    messages: list[RawMessage]
    channels: list[Channel]
    schemas: list[Schema]
    size: int
    """Bytes, decompressed."""


def chunk_records(body: bytes) -> ChunkContents:
    """What the body of a chunk record holds; unknown records in it are skipped.

    Raises:
        ChunkError: it is damaged.
    """
    try:
        data = _decompressed(body)
        return _split(data)
    except (struct.error, McapError, ValueError, IndexError, RuntimeError, zstandard.ZstdError) as error:
        raise ChunkError(f"damaged: {error}") from None


def _decompressed(body: bytes) -> bytes:
    _, _, size, crc = _HEAD.unpack_from(body)
    at = _HEAD.size
    (name_length,) = struct.unpack_from("<I", body, at)
    compression = body[at + 4 : at + 4 + name_length].decode("ascii")
    at += 4 + name_length
    (length,) = struct.unpack_from("<Q", body, at)
    packed = body[at + 8 : at + 8 + length]
    if len(packed) != length or size > MOST_BYTES:
        raise ChunkError("damaged: its lengths disagree")
    match compression:
        case "zstd":
            data = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
        case "lz4":
            data = lz4.frame.decompress(packed)
        case "":
            data = packed
        case _:
            raise ChunkError(f"compressed with {compression!r}, which this version cannot read")
    if len(data) != size:
        raise ChunkError(f"damaged: {len(data)} bytes decompressed, {size} announced")
    if crc and zlib.crc32(data) != crc:
        raise ChunkError("damaged: its checksum differs")
    return data


def _split(data: bytes) -> ChunkContents:
    messages: list[RawMessage] = []
    channels: list[Channel] = []
    schemas: list[Schema] = []
    view, position, end = memoryview(data), 0, len(data)
    while position < end:
        opcode, length = _RECORD.unpack_from(data, position)
        position += _RECORD.size
        after = position + length
        if after > end:
            raise ChunkError("damaged: a record in it is cut off")
        if opcode == Opcode.MESSAGE:
            head = _MESSAGE.unpack_from(data, position)
            messages.append(RawMessage._make((*head, view[position + _MESSAGE.size : after])))
        elif opcode == Opcode.CHANNEL:
            channels.append(Channel.read(ReadDataStream(BytesIO(data[position:after]))))
        elif opcode == Opcode.SCHEMA:
            schemas.append(Schema.read(ReadDataStream(BytesIO(data[position:after]))))
        position = after
    return ChunkContents(messages, channels, schemas, end)
