"""A generating endpoint: read the request, run its sequences, answer whole or as a stream.

Errors before the first token have a real status, streams included; later ones are one error event, after which the
stream closes without ``[DONE]``.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive, Scope, Send

from engine.ipc import Output
from engine.server.api_error import ApiError
from engine.server.choice_text import ChoiceText, Piece
from engine.server.dialect import Dialect, Job
from engine.server.disconnect import unless_client_leaves
from engine.server.engine_client import EngineClient
from engine.server.fields import Fields
from engine.server.generation import Generation
from engine.server.responses import EventStream, send_error, send_json
from engine.server.usage import UsageCounter

log = logging.getLogger(__name__)


class GenerationEndpoint:
    """An ASGI application for one dialect."""

    def __init__(self, dialect: Dialect, client: EngineClient, max_body_bytes: int) -> None:
        self._dialect = dialect
        self._client = client
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._read(Request(scope, receive))
        except ClientDisconnect:
            return
        except ApiError as error:
            # The rest of the body is never read, so the connection cannot be used again.
            await send_json(send, error.status, error.body(), {"connection": "close"})
            return
        await unless_client_leaves(receive, self._answer(body, send))

    async def _read(self, request: Request) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in request.stream():
            size += len(part)
            if size > self._max_body_bytes:
                limit = self._max_body_bytes
                raise ApiError(413, f"the body is larger than {limit} bytes; send less", code="body_too_large")
            parts.append(part)
        return b"".join(parts)

    async def _answer(self, body: bytes, send: Send) -> None:
        stream = EventStream(send)
        try:
            job = await self._dialect.prepare(Fields.decode(body))
            async with Generation(self._client, job.submits()) as generation:
                if job.options.stream:
                    await self._stream(job, generation.outputs(), stream)
                else:
                    await self._whole(job, generation.outputs(), send)
        except ApiError as error:
            await _fail(stream, send, error)
        except Exception:
            log.exception("a request failed in the server itself")
            await _fail(stream, send, ApiError(500, "the server failed on this request; its log says more"))

    async def _whole(self, job: Job, outputs: AsyncIterator[tuple[int, Output]], send: Send) -> None:
        run = Run(job)
        answers = [Piece() for _ in run.texts]
        async for index, piece in run.pieces(outputs):
            answers[index].add(piece)
        choices = [self._dialect.choice(job, index, answer) for index, answer in enumerate(answers)]
        envelope = self._dialect.envelope(job, streamed=False)
        await send_json(send, 200, {**envelope, "choices": choices, "usage": run.usage.as_json()})

    async def _stream(self, job: Job, outputs: AsyncIterator[tuple[int, Output]], stream: EventStream) -> None:
        run = Run(job)
        envelope = self._dialect.envelope(job, streamed=True)
        started = [False] * len(run.texts)
        async for index, piece in run.pieces(outputs):
            if not stream.started:
                await stream.start()
            choice = self._dialect.chunk_choice(job, index, piece, first=not started[index])
            started[index] = True
            usage: dict[str, Any] = {}
            if job.options.continuous_usage:
                usage = {"usage": run.usage.as_json()}
            elif job.options.include_usage:
                usage = {"usage": None}
            await stream.event({**envelope, "choices": [choice], **usage})
        if job.options.include_usage:
            await stream.event({**envelope, "choices": [], "usage": run.usage.as_json()})
        await stream.done()
        await stream.close()


class Run:
    """One job while it runs: the text of each sequence, and the counts."""

    def __init__(self, job: Job) -> None:
        sequences = len(job.prompts) * job.options.n
        stops = job.options.sampling.stop_token_ids
        self.texts = [ChoiceText(job.tokenizer, job.prompt_of(sequence).ids, stops) for sequence in range(sequences)]
        self.usage = UsageCounter(job.prompt_tokens, sequences)

    async def pieces(self, outputs: AsyncIterator[tuple[int, Output]]) -> AsyncIterator[tuple[int, Piece]]:
        """Each output as its reader sees it."""
        async for index, output in outputs:
            self.usage.note(index, output)
            yield index, self.texts[index].push(output)


async def _fail(stream: EventStream, send: Send, error: ApiError) -> None:
    if stream.started:
        await stream.event(error.body())
        await stream.close()
    else:
        await send_error(send, error)
