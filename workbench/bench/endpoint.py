"""An OpenAI-compatible endpoint and the connections to it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h11
import msgspec

from workbench.bench.answer import Answer, Chunk, decode_chunk
from workbench.bench.event_lines import DONE, EventLines
from workbench.bench.http_connection import Address, HttpConnection
from workbench.bench.request_error import RequestError

CHAT = "/chat/completions"
COMPLETIONS = "/completions"

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Ask:
    """What one request asks for."""

    path: str
    body: dict[str, Any]
    extensions: dict[str, Any] = field(default_factory=dict)
    """Fields that are not OpenAI's, left out where the endpoint refuses them."""


class Endpoint:
    """Sends requests, any number at a time; connections that are free are used again."""

    def __init__(self, url: str, *, model: str | None = None, api_key: str | None = None) -> None:
        """``url``: up to and with ``/v1``.

        Raises:
            ValueError: it is no such URL.
        """
        self.url = url.rstrip("/")
        self.model = model
        self.speaks_extensions = True
        """False: only what is OpenAI's own is sent; found out by ``try_out``."""
        self._address = Address.parse(url)
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._free: list[HttpConnection] = []

    async def models(self) -> list[str]:
        """Names of the models it serves.

        Raises:
            RequestError: it does not say.
        """
        async with self._connection() as connection:
            response = await connection.send("GET", "/models", b"")
            body = await connection.body()
        if response.status_code != 200:
            raise _refusal(response, body)
        try:
            return [str(entry["id"]) for entry in msgspec.json.decode(body)["data"]]
        except (msgspec.DecodeError, KeyError, TypeError):
            raise RequestError("not an endpoint", f"{self.url}/models is no list of models") from None

    async def try_out(self, ask: Ask) -> Answer:
        """One request before anything counts: with extensions, and where they are refused without, from then on.

        Raises:
            RequestError: neither way gives an answer whose tokens can be counted.
        """
        answer = await self.stream(ask)
        if answer.error is not None and answer.error.status in (400, 422):
            self.speaks_extensions = False
            answer = await self.stream(ask)
        if answer.error is not None:
            raise answer.error
        if answer.usage is None:
            raise RequestError(
                "no token counts",
                f"{self.url} sends no usage in its streams (stream_options.include_usage), and chunks are not tokens",
            )
        return answer

    async def stream(self, ask: Ask, leave: Callable[[Answer], bool] | None = None) -> Answer:
        """Send a request and read its stream. What goes wrong is in the answer's ``error``.

        ``leave``: asked after each chunk; True hangs up.
        """
        answer = Answer(time.monotonic())
        try:
            async with self._connection() as connection:
                await self._read_stream(connection, ask, answer, leave)
        except RequestError as error:
            answer.error = error
        answer.ended_at = time.monotonic()
        return answer

    async def whole(self, ask: Ask) -> Answer:
        """Send a request and wait for its whole answer. What goes wrong is in the answer's ``error``."""
        answer = Answer(time.monotonic())
        try:
            async with self._connection() as connection:
                response = await connection.send("POST", ask.path, self._body(ask, stream=False))
                body = await connection.body()
            if response.status_code != 200:
                raise _refusal(response, body)
            answer.take(_chunk(body), time.monotonic())
        except RequestError as error:
            answer.error = error
        answer.ended_at = time.monotonic()
        return answer

    async def abandon(self, ask: Ask) -> Answer:
        """Send a request and hang up before anything can come back."""
        answer = Answer(time.monotonic(), left=True)
        connection = HttpConnection(self._address, self._headers)
        try:
            await connection.open()
            await connection.put("POST", ask.path, self._body(ask, stream=True))
        except RequestError as error:
            answer.error = error
        finally:
            connection.close()
        answer.ended_at = time.monotonic()
        return answer

    def close(self) -> None:
        """Hang up everywhere."""
        for connection in self._free:
            connection.close()
        self._free.clear()

    async def _read_stream(
        self, connection: HttpConnection, ask: Ask, answer: Answer, leave: Callable[[Answer], bool] | None
    ) -> None:
        response = await connection.send("POST", ask.path, self._body(ask, stream=True))
        if response.status_code != 200:
            raise _refusal(response, await connection.body())
        lines, is_done = EventLines(), False
        while part := await connection.part():
            at = time.monotonic()
            for payload in lines.feed(part):
                if payload == DONE:
                    is_done = True
                    continue
                chunk = _chunk(payload)
                if chunk.error is not None:
                    code, message = _error_of(chunk.error)
                    raise RequestError(f"error event {code}".rstrip(), message)
                answer.take(chunk, at)
            if leave is not None and leave(answer):
                answer.left = True
                connection.close()
                return
        if not is_done:
            raise RequestError("incomplete stream", "it ended without [DONE]")

    def _body(self, ask: Ask, *, stream: bool) -> bytes:
        body = dict(ask.body)
        if self.model is not None:
            body["model"] = self.model
        if self.speaks_extensions:
            body |= {"return_token_ids": True, **ask.extensions}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return encode(body)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[HttpConnection]:
        connection = None
        while self._free and connection is None:
            connection = self._free.pop()
            if not connection.is_fresh:
                connection.close()
                connection = None
        if connection is None:
            connection = HttpConnection(self._address, self._headers)
            await connection.open()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if connection.is_fresh:
            self._free.append(connection)
        else:
            connection.close()


def _chunk(payload: bytes) -> Chunk:
    try:
        return decode_chunk(payload)
    except msgspec.MsgspecError as error:
        raise RequestError("unreadable answer", str(error)) from None


def _error_of(error: Any) -> tuple[str, str]:
    """(code, message) of an error object, in whichever of the usual ways it is written."""
    if isinstance(error, dict):
        return str(error.get("code") or error.get("type") or ""), str(error.get("message") or "")
    return "", str(error)


def _refusal(response: h11.Response, body: bytes) -> RequestError:
    status = response.status_code
    try:
        found = msgspec.json.decode(body)
    except msgspec.DecodeError:
        found = None
    code, message = _error_of(found.get("error", found) if isinstance(found, dict) else body[:200].decode("latin-1"))
    waits = [value for name, value in response.headers if name == b"retry-after"]
    retry_after = float(waits[0]) if waits and waits[0].isdigit() else 0.0
    message = " ".join(message.split())  # a page of HTML is one line too
    return RequestError(f"{status} {code}".rstrip(), message, status=status, retry_after=retry_after)
