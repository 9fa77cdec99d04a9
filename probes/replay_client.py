"""Asks an engine to send messages again: those that were missed, and those from before anybody listened."""

from __future__ import annotations

import time

import msgspec
import zmq

from probes.events import Event
from probes.wire import END, Message, ReplayEnd, ReplayRequest, WireError, decode_event, encode, unpack

TAIL_S = 0.2
"""How long the newest numbers may take to be sent, which an engine has given out while it had much to send."""

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

    def recall(self, boot_id: str, topic: str, last: int, count: int) -> list[Event]:
        """The newest ``count`` numbers up to ``last``, as far as that boot of the engine still keeps them, in order.

        Never raises; what cannot be read (a newer engine's) is left out.
        """
        if last < 1 or count < 1:
            return []
        deadline = time.monotonic() + TAIL_S
        while True:
            messages = self.fetch(boot_id, topic, max(1, last - count + 1), last)
            if (messages and messages[-1].seq == last) or time.monotonic() > deadline:
                break
            time.sleep(0.01)
        events: list[Event] = []
        for message in messages:
            try:
                events.append(decode_event(message))
            except WireError:
                continue
        return events

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


def runs(messages: list[Message]) -> list[tuple[int, list[Message]]]:
    """Messages with rising numbers, split where a number is missing: (first number, messages)."""
    found: list[tuple[int, list[Message]]] = []
    for message in messages:
        if found and message.seq == found[-1][0] + len(found[-1][1]):
            found[-1][1].append(message)
        else:
            found.append((message.seq, [message]))
    return found
