"""One HTTP/1.1 connection on asyncio's streams and h11: little work a chunk, for engines that share our cores."""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.parse
from dataclasses import dataclass

import h11

from workbench.bench.request_error import RequestError

CONNECT_S = 10.0
SILENCE_S = 300.0
"""Longest silence of the server within one request."""
MAX_IDLE_S = 2.0
"""A connection that was idle for longer is not used again: servers close theirs after a few seconds."""
READ = 1 << 16


@dataclass(frozen=True)
class Address:
    """Where an endpoint listens, out of a URL."""

    scheme: str
    host: str
    port: int
    prefix: str
    """Path before ``/chat/completions``, without a slash at its end; ``/v1`` as a rule."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read ``http://host:port/v1``.

        Raises:
            ValueError: it is no such URL.
        """
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of an endpoint; it looks like http://127.0.0.1:8000/v1")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        return cls(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class HttpConnection:
    """Requests one after another. Not for several tasks at once."""

    def __init__(self, address: Address, headers: dict[str, str]) -> None:
        """``headers``: sent with every request, beside those that HTTP itself needs."""
        self._address = address
        self._headers = [("Host", address.host_header), ("Accept-Encoding", "identity"), *headers.items()]
        self._h11 = h11.Connection(our_role=h11.CLIENT)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._idle_since = 0.0
        self._heard_at = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._is_silent = False

    @property
    def is_fresh(self) -> bool:
        """Whether the next request can go out on it."""
        if self._reader is None or self._h11.our_state is not h11.IDLE or self._reader.at_eof():
            return False
        return time.monotonic() - self._idle_since < MAX_IDLE_S

    async def open(self) -> None:
        """Connect.

        Raises:
            RequestError: nobody listens there.
        """
        address = self._address
        tls = ssl.create_default_context() if address.scheme == "https" else None
        try:
            async with asyncio.timeout(CONNECT_S):
                self._reader, self._writer = await asyncio.open_connection(address.host, address.port, ssl=tls)
        except TimeoutError:
            raise RequestError("no connection", f"{address.host_header}: not within {CONNECT_S:g} s") from None
        except OSError as error:
            raise RequestError("no connection", f"{address.host_header}: {error.strerror or error}") from None
        self._idle_since = time.monotonic()

    async def put(self, method: str, path: str, body: bytes) -> None:
        """Send a request, without a look at its answer.

        Raises:
            RequestError: the connection broke.
        """
        assert self._writer is not None
        headers = [*self._headers, ("Content-Length", str(len(body)))]
        if body:
            headers.append(("Content-Type", "application/json"))
        data = self._h11.send(h11.Request(method=method, target=self._address.prefix + path, headers=headers)) or b""
        if body:
            data += self._h11.send(h11.Data(data=body)) or b""
        data += self._h11.send(h11.EndOfMessage()) or b""
        self._heard_at = time.monotonic()
        self._look_again(SILENCE_S)
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError as error:
            raise RequestError("connection lost", str(error.strerror or error)) from None

    async def send(self, method: str, path: str, body: bytes) -> h11.Response:
        """Send a request and wait for the head of its answer; read the body with ``part`` to its end.

        Raises:
            RequestError: the connection broke.
        """
        await self.put(method, path, body)
        while True:
            event = await self._event()
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise RequestError("connection lost", "the server closed it before it answered")

    async def part(self) -> bytes:
        """The next piece of the body as it comes; empty at its end, after which the connection can be used again,
        where the server agrees.

        Raises:
            RequestError: the connection broke, or nothing came for too long.
        """
        event = await self._event()
        if isinstance(event, h11.Data):
            return bytes(event.data)
        if not isinstance(event, h11.EndOfMessage):
            raise RequestError("connection lost", "the server closed it in mid answer")
        if self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE:
            self._h11.start_next_cycle()
            self._idle_since = time.monotonic()
            self._rest()
        else:
            self.close()
        return b""

    async def body(self) -> bytes:
        """All of it that has not been read yet. Raises as ``part`` does."""
        parts = []
        while part := await self.part():
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        """Hang up at once. Harmless twice."""
        self._rest()
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None

    def _look_again(self, seconds: float) -> None:
        self._watch = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Cut a connection that has been silent for too long. One timer a request: a timeout around each read would be
        a sixth of what a chunk costs here."""
        left = self._heard_at + SILENCE_S - time.monotonic()
        if left > 0:
            self._look_again(left)
        elif self._writer is not None:
            self._is_silent = True
            self._writer.transport.abort()

    def _rest(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _event(self) -> h11.Event:
        assert self._reader is not None
        try:
            while not isinstance(event := self._h11.next_event(), h11.Event):
                data = await self._reader.read(READ)
                if self._is_silent:
                    raise RequestError("silent server", f"nothing came for {SILENCE_S:g} s")
                self._heard_at = time.monotonic()
                self._h11.receive_data(data)
            return event
        except OSError as error:
            raise RequestError("connection lost", str(error.strerror or error)) from None
        except h11.RemoteProtocolError as error:
            raise RequestError("connection lost", str(error)) from None
