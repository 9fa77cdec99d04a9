"""Requests in flight: who waits for which, across boots of the engine."""

from __future__ import annotations

from collections.abc import Callable

from engine.ipc import Abort, Failed, Output, Submit, ToEngine
from engine.server.api_error import ApiError

Deliver = Callable[[Output | Failed], None]


class EngineClient:
    """Sends requests to the engine that runs now and gives each answer to whoever asked.

    A request is in flight until its last message, its abort, or the death of the engine, whichever comes first; after
    that nothing is delivered for it and nothing is sent about it.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        """Most requests in flight (running and queued in the engine)."""
        self.aborts_sent = 0
        self._send: Callable[[ToEngine], None] | None = None
        self._waiting: dict[str, Deliver] = {}  # request_id -> who asked

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    def connect(self, send: Callable[[ToEngine], None]) -> None:
        """An engine is ready; ``send`` reaches it."""
        self._send = send

    def disconnect(self, status: int, code: str, message: str) -> None:
        """The engine is gone: everything in flight fails with this."""
        self._send = None
        self.fail_all(status, code, message)

    def fail_all(self, status: int, code: str, message: str) -> None:
        """End everything in flight, for the clients; the engine is told to abort if it still lives."""
        for request_id in list(self._waiting):
            deliver = self._waiting[request_id]
            self.abort(request_id)
            deliver(Failed(request_id=request_id, status=status, code=code, message=message))

    def make_room(self, count: int) -> None:
        """Check that ``count`` more requests fit.

        Raises:
            ApiError: 429 when they do not, 503 when no engine is there.
        """
        if self._send is None:
            raise ApiError(503, "the engine is not ready; try again shortly", code="engine_unavailable")
        if self.in_flight + count > self.capacity:
            raise ApiError(
                429,
                f"{self.in_flight} requests run or wait and the limit is {self.capacity}; try again later, "
                "or raise --max-queue",
                code="queue_full",
            )

    def submit(self, request: Submit, deliver: Deliver) -> None:
        """Send a request; ``deliver`` gets its messages until the last one."""
        assert self._send is not None, "make_room comes first, in the same turn of the event loop"
        self._waiting[request.request_id] = deliver
        self._send(request)

    def abort(self, request_id: str) -> None:
        """Forget a request and tell the engine, once; nothing at all for one that has ended."""
        if self._waiting.pop(request_id, None) is None or self._send is None:
            return
        self.aborts_sent += 1
        self._send(Abort(request_id=request_id))

    def handle(self, message: Output | Failed) -> None:
        """Deliver one message; those for requests that ended meanwhile are dropped."""
        deliver = self._waiting.get(message.request_id)
        if deliver is None:
            return
        if isinstance(message, Failed) or message.finish_reason is not None:
            del self._waiting[message.request_id]
        deliver(message)
