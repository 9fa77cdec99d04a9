"""The newest steps and marks of a session, bounded, addressable by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import msgspec

from probes.events import AlertEvent, StepEvent

MarkKind = Literal["knob", "gap", "restart", "alert", "drop", "malformed", "gone", "skipped"]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(StepEvent).decode


@dataclass(frozen=True)
class Mark:
    """A row between steps: something happened that is not a step."""

    kind: MarkKind
    text: str
    severe: bool = False
    alert: AlertEvent | None = None
    """The alert itself, for what its text does not say."""


Entry = StepEvent | Mark


class Timeline:
    """A ring of entries. Rows have numbers that only grow: ``first`` is the number of the oldest one kept.

    Steps are kept encoded (a third of a decoded one's memory: about 1 kB) and decoded when a row is drawn.
    """

    def __init__(self, capacity: int = 20_000) -> None:
        self.capacity = capacity
        self.first = 0
        self._entries: list[bytes | Mark] = []

    def append(self, entry: Entry) -> None:
        self._entries.append(entry if isinstance(entry, Mark) else _encode(entry))
        slack = self.capacity // 8  # trimmed in lumps: one list move per `slack` appends
        if len(self._entries) > self.capacity + slack:
            excess = len(self._entries) - self.capacity
            del self._entries[:excess]
            self.first += excess

    def clear(self) -> None:
        """Forget all rows; numbers go on growing, so that whoever drew the old rows notices."""
        if self._entries:
            self.first = self.end + 1  # a new end too: the table is drawn anew even when nothing follows
        self._entries = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def end(self) -> int:
        """Number that the next row will get."""
        return self.first + len(self._entries)

    def row(self, number: int) -> Entry | None:
        """The entry with that row number, or None when it is gone or not there yet."""
        index = number - self.first
        if not 0 <= index < len(self._entries):
            return None
        entry = self._entries[index]
        return entry if isinstance(entry, Mark) else _decode(entry)

    def payload(self, number: int) -> bytes | None:
        """The step with that row number as it is kept, for readers of a few of its fields; None for all else."""
        index = number - self.first
        entry = self._entries[index] if 0 <= index < len(self._entries) else None
        return entry if isinstance(entry, bytes) else None

    def snapshot(self) -> Timeline:
        """A copy that stays as it is while this one goes on; entries are shared."""
        copy = Timeline(self.capacity)
        copy.first = self.first
        copy._entries = self._entries.copy()
        return copy

    def __iter__(self) -> Iterator[Entry]:
        for entry in self._entries:
            yield entry if isinstance(entry, Mark) else _decode(entry)
