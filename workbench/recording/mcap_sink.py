"""An MCAP file as it is written: chunks that are whole on the disk after every flush, and a summary at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

from mcap.data_stream import RecordBuilder
from mcap.records import ChunkIndex
from mcap.writer import CompressionType, Writer

from workbench.recording.part_file import PartFile

PROFILE = "specwb"
CHUNK_BYTES = 1 << 20


class _PackedIndexes:
    """The chunks' entries of the summary, as bytes: some hundred each, where the library's objects take a kilobyte.

    A recorder that runs for days writes a chunk every quarter second, and keeps an entry of each until the end.
    """

    def __init__(self) -> None:
        self._packed = bytearray()

    def append(self, index: ChunkIndex) -> None:
        builder = RecordBuilder()
        index.write(builder)
        self._packed += builder.end()

    def __iter__(self) -> Iterator[_PackedIndexes]:
        return iter((self,)) if self._packed else iter(())

    def write(self, builder: RecordBuilder) -> None:
        builder.write(self._packed)


class McapSink:
    """Messages into ``PATH.part``, which becomes ``PATH`` when it is finished. Any method may raise an OSError."""

    def __init__(self, path: Path, library: str) -> None:
        """Begin the file. Raises RecordingError when it cannot be made."""
        self.file = PartFile(path)
        self._writer = Writer(
            cast(IO[Any], self.file), chunk_size=CHUNK_BYTES, compression=CompressionType.ZSTD, enable_data_crcs=True
        )
        # The library keeps them in this private list; without it (another version) it works as well, in more memory.
        if hasattr(self._writer, "_Writer__chunk_indices"):
            setattr(self._writer, "_Writer__chunk_indices", _PackedIndexes())  # noqa: B010
        try:
            self._writer.start(PROFILE, library)
        except BaseException:
            self.file.discard()
            raise
        self.whole = self.file.tell()
        """Bytes up to the end of the last whole record."""

    def channel(self, topic: str, message_encoding: str, schema_name: str, schema_encoding: str, schema: bytes) -> int:
        """Declare a channel; its number."""
        schema_id = self._writer.register_schema(schema_name, schema_encoding, schema) if schema_name else 0
        return self._writer.register_channel(topic, message_encoding, schema_id)

    def message(self, channel: int, log_ns: int, publish_ns: int, sequence: int, data: bytes) -> None:
        """Into the current chunk; on the disk at the next flush, or when the chunk is full."""
        self._writer.add_message(channel, log_ns, data, publish_ns, sequence & 0xFFFFFFFF)

    def metadata(self, name: str, fields: dict[str, str]) -> None:
        """A record beside the chunks, on the disk at once."""
        self._writer.add_metadata(name, fields)
        self.whole = self.file.tell()

    def flush(self) -> None:
        """End the chunk and hand it to the operating system."""
        self._writer.flush()
        self.whole = self.file.tell()

    def finish(self) -> None:
        """Write the summary and give the file its name. Raises RecordingError when that is taken."""
        self.flush()
        self._writer.finish()
        self.whole = self.file.tell()
        self.file.publish()
        self.file.close()

    def abandon(self) -> None:
        """The disk takes no more: leave a file that ends in a whole record."""
        try:
            self.file.cut(self.whole)
        finally:
            self.file.close()
