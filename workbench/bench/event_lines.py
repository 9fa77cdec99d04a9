"""Server-sent events out of a byte stream, as far as OpenAI's streams go: one ``data:`` line an event."""

from __future__ import annotations

DONE = b"[DONE]"


class EventLines:
    """Takes bytes as they come, gives the payloads that are whole."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Payloads that these bytes complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line[5:].strip() for line in lines if line.startswith(b"data:")]
