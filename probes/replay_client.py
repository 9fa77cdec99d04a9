"""Asks an engine to send missed messages again."""

from __future__ import annotations

import time

import msgspec
import zmq

from probes.wire import END, Message, ReplayEnd, ReplayRequest, WireError, encode, unpack

_decode_end = msgspec.msgpack.Decoder(ReplayEnd).decode


class ReplayClient:
    """Fetches ranges of one topic, a batch at a time, so that the engine never queues more than a batch for us."""

    def __init__(self, endpoint: str, context: zmq.Context[zmq.Socket[bytes]], *, patience: float = 2.0) -> None:
        """``patience``: seconds without a message after which what is there must do."""
        self._endpoint = endpoint
        self._context = context
        self._patience = patience

    def fetch(self, boot_id: str, topic: str, first: int, last: int) -> list[Message]:
        """What that boot of the engine still keeps of ``first`` to ``last``, in order; may be nothing.

        Never raises and never waits longer than ``patience`` for the next message.
        """
        found: list[Message] = []
        # A socket of its own a call: an answer that comes late then cannot be taken for the next one's.
        with self._context.socket(zmq.DEALER) as socket:
            socket.linger = 0
            socket.setsockopt(zmq.RCVHWM, 2000)
            socket.setsockopt(zmq.RECONNECT_IVL, 50)
            socket.connect(self._endpoint)
            while first <= last:
                socket.send(encode(ReplayRequest(topic=topic, first=first, last=last)), zmq.NOBLOCK)
                end = self._receive(socket, topic, first, last, found)
                if end is None or end.error:
                    break
                if end.boot_id != boot_id:
                    return []  # its successor's numbers mean other events
                if end.next <= first:
                    break
                first = end.next
        return found

    def _receive(
        self, socket: zmq.Socket[bytes], topic: str, first: int, last: int, found: list[Message]
    ) -> ReplayEnd | None:
        """Collect one answer; None when it breaks off."""
        deadline = time.monotonic() + self._patience
        while True:
            if not socket.poll(max(0, int((deadline - time.monotonic()) * 1000))):
                return None
            try:
                message = unpack(socket.recv_multipart(zmq.NOBLOCK))
                if message.topic == END:
                    return _decode_end(message.payload)
            except (WireError, msgspec.MsgspecError):
                return None
            if message.topic == topic and first <= message.seq <= last:
                found.append(message)
                first = message.seq + 1  # rising, whatever the other side does
                deadline = time.monotonic() + self._patience
