"""JSON and SSE over plain ASGI messages."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.types import Send

from engine.server.api_error import ApiError

encode_json = msgspec.json.Encoder().encode
DONE = b"data: [DONE]\n\n"


async def send_json(send: Send, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
    """A whole JSON response."""
    payload = encode_json(body)
    lines = {"content-type": "application/json", "content-length": str(len(payload)), **(headers or {})}
    await _start(send, status, lines)
    await send({"type": "http.response.body", "body": payload})


async def send_error(send: Send, error: ApiError) -> None:
    """An error in OpenAI's format."""
    await send_json(send, error.status, error.body(), error.headers)


class EventStream:
    """A streamed response: one server-sent event a call. ``send`` waits while the client's buffers are full."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def start(self) -> None:
        """Send the status line; from here on an error can only be an event."""
        self.started = True
        headers = {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache",
            "x-accel-buffering": "no",  # nginx would collect the events
        }
        await _start(self._send, 200, headers)

    async def event(self, data: Any) -> None:
        """One JSON event."""
        await self._write(b"data: " + encode_json(data) + b"\n\n")

    async def done(self) -> None:
        """OpenAI's mark that the stream is complete; a stream that failed ends without it."""
        await self._write(DONE)

    async def close(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, data: bytes) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": True})


async def _start(send: Send, status: int, headers: dict[str, str]) -> None:
    pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
