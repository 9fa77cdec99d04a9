"""By which column the steps are sorted, and how to read its value without decoding the rest of a step. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

Value = float | str | None


def _reader(field: str, kind: Any, default: Any) -> Callable[[bytes], Any]:
    """Decodes one field of an encoded step: a third of the time of decoding it all."""
    part = msgspec.defstruct("StepPart", [(field, kind, default)])
    decode = msgspec.msgpack.Decoder(part).decode
    return lambda payload: getattr(decode(payload), field)


_cpu_us = _reader("cpu_us", dict[str, int], msgspec.field(default_factory=dict))


def _took(payload: bytes) -> Value:
    times = _cpu_us(payload)
    return sum(times.values()) if times else None


VALUES: dict[str, Callable[[bytes], Value]] = {
    "ms": _took,
    "acc": _reader("accept_length", float | None, None),
    "reqs": _reader("requests", int, 0),
    "emit": _reader("emitted", int, 0),
    "slots": _reader("slots_expected", int, 0),
    "prompt": _reader("prefill_tokens", int, 0),
    "que": _reader("queue", int, 0),
    "mode": _reader("mode", str, ""),
    "reason": _reader("reason", str, ""),
}
"""Title of the table's column -> its value in an encoded step."""
WORDS = ("mode", "reason")


@dataclass(frozen=True)
class StepOrder:
    """One column and a direction."""

    column: str
    largest_first: bool

    def value(self, payload: bytes) -> Value:
        """What the step is sorted by; None when it has no such value."""
        return VALUES[self.column](payload)

    @property
    def arrow(self) -> str:
        """For the column's header: which way the values go downwards."""
        return "↓" if self.largest_first else "↑"

    @property
    def words(self) -> str:
        if self.column in WORDS:
            return f"{self.column}, {'z to a' if self.largest_first else 'a to z'}"
        return f"{self.column}, {'largest' if self.largest_first else 'smallest'} first"

    def turned(self) -> StepOrder:
        return replace(self, largest_first=not self.largest_first)


def next_order(order: StepOrder | None) -> StepOrder | None:
    """The next column; after the last one none, which is by time. Numbers start with the largest, words with a."""
    titles = list(VALUES)
    index = titles.index(order.column) + 1 if order else 0
    return StepOrder(titles[index], titles[index] not in WORDS) if index < len(titles) else None
