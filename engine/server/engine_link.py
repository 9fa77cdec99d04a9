"""The two pipes to one boot of the engine process. The server binds both before it starts the process."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec
import zmq

from engine import ipc

BURST = 256
"""Messages handled in one turn of the event loop, so that a flood cannot starve HTTP."""
RESEND_S = 0.01


class EngineLink:
    """PUSH to the engine, PULL from it, on endpoints that no other boot shares.

    Neither direction ever blocks the event loop: what cannot be sent yet waits in order.
    """

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], directory: Path, boot_id: str) -> None:
        self.boot_id = boot_id
        # Short, and .sock like all others: discovery checked that such a path fits, and cleans up what dead ones left.
        self._paths = [directory / f"{way}{boot_id[:6]}.sock" for way in "io"]
        self.to_engine, self.from_engine = (f"ipc://{path}" for path in self._paths)
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[bytes] = deque()
        self._receive: Callable[[ipc.FromEngine], None] | None = None
        self._push = context.socket(zmq.PUSH)
        self._pull = context.socket(zmq.PULL)
        for socket, endpoint in ((self._push, self.to_engine), (self._pull, self.from_engine)):
            socket.set(zmq.LINGER, 0)
            socket.set_hwm(0)  # bounded by the requests in flight, which the client limits
            socket.bind(endpoint)

    def listen(self, receive: Callable[[ipc.FromEngine], None]) -> None:
        """Call ``receive`` with each message, on the event loop."""
        self._receive = receive
        self._loop.add_reader(self._pull.fileno(), self._drain)
        self._drain()

    def send(self, message: ipc.ToEngine) -> None:
        """Hand a message to the engine; before it has connected, messages wait here."""
        self._unsent.append(ipc.encode(message))
        if len(self._unsent) == 1:
            self._flush()

    def _flush(self) -> None:
        while self._unsent:
            if self._push.closed:
                return
            try:
                self._push.send(self._unsent[0], zmq.NOBLOCK)
            except zmq.Again:
                self._loop.call_later(RESEND_S, self._flush)
                return
            self._unsent.popleft()

    def _drain(self) -> None:
        # ZeroMQ's descriptor tells of changes only: whoever is woken must read until nothing is left.
        for _ in range(BURST):
            if self._pull.closed or self._receive is None:
                return
            try:
                payload = self._pull.recv(zmq.NOBLOCK)
            except zmq.Again:
                return
            with contextlib.suppress(msgspec.DecodeError):  # a process torn down in mid message
                self._receive(ipc.decode_from_engine(payload))
        self._loop.call_soon(self._drain)

    def close(self) -> None:
        """Close both pipes and remove their socket files."""
        if self._receive is not None:
            self._loop.remove_reader(self._pull.fileno())
            self._receive = None
        self._push.close()
        self._pull.close()
        for path in self._paths:
            path.unlink(missing_ok=True)
