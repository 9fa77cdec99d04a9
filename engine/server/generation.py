"""All sequences of one HTTP request (prompts × n) as one stream of outputs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from types import TracebackType

from engine.ipc import Failed, Output, Submit
from engine.server.api_error import ApiError
from engine.server.engine_client import EngineClient
from engine.server.mailbox import Mailbox


class Generation:
    """Submits on entry, aborts on exit whatever has not ended: the client left, or a sibling failed."""

    def __init__(self, client: EngineClient, requests: list[Submit]) -> None:
        self._client = client
        self._requests = requests
        self._mailbox = Mailbox()

    async def __aenter__(self) -> Generation:
        self._client.make_room(len(self._requests))
        for index, request in enumerate(self._requests):
            self._client.submit(request, partial(self._mailbox.put, index))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for request in self._requests:
            self._client.abort(request.request_id)

    async def outputs(self) -> AsyncIterator[tuple[int, Output]]:
        """Each output with the index of its sequence, until all sequences have ended.

        Raises:
            ApiError: a sequence failed; the others are aborted when the generation is left.
        """
        running = len(self._requests)
        while running:
            index, message = await self._mailbox.get()
            if isinstance(message, Failed):
                raise ApiError.from_failed(message)
            if message.finish_reason == "error":
                raise ApiError(500, "the engine failed on this request", code="engine_error")
            if message.finish_reason == "abort":
                raise ApiError(503, "the engine ended this request before it was complete", code="request_aborted")
            running -= message.finish_reason is not None
            yield index, message
