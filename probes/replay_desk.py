"""What was sent lately, topic by topic, and the answers to those who missed some of it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from probes.events import TOPICS
from probes.ring import ReplayRing
from probes.wire import END, ReplayEnd, ReplayRequest, encode, pack

REPLAY_BATCH = 500
"""Messages of one answer; the client asks again for the rest, at its own pace, so that nothing piles up here."""

REPLAY_BATCH_BYTES = 1 << 20

_decode = msgspec.msgpack.Decoder(ReplayRequest).decode


class ReplayDesk:
    """A ring a topic. Used by the publisher thread only."""

    def __init__(self, boot_id: str, *, max_events: int, max_bytes: int) -> None:
        self._boot_id = boot_id
        self._rings = {topic: ReplayRing(max_events, max_bytes) for topic in TOPICS}
        self.last_sent: dict[str, int] = {}
        """Topic -> newest sequence number handed to the socket."""

    def keep(self, topic: str, seq: int, payload: bytes) -> None:
        """Remember a message that is being sent."""
        self._rings[topic].append(seq, payload)
        self.last_sent[topic] = seq

    def answer(self, payload: bytes) -> Iterator[list[bytes]]:
        """The messages that answer a request, the end message last; an error is an end message too."""
        try:
            request = _decode(payload)
        except (msgspec.MsgspecError, RecursionError) as error:
            yield self._end("", 0, 0, 0, str(error))
            return
        ring = self._rings.get(request.topic)
        if ring is None:
            known = ", ".join(TOPICS)
            yield self._end("", 0, 0, 0, f"unknown topic {request.topic[:40]!r}; the topics are {known}")
            return
        found, following = ring.read(request.first, request.last, REPLAY_BATCH, REPLAY_BATCH_BYTES)
        for seq, item in found:
            yield pack(request.topic, seq, item)
        last = self.last_sent.get(request.topic, 0)
        yield self._end(request.topic, last + 1 if ring.first is None else ring.first, last, following)

    def _end(self, topic: str, first: int, last: int, following: int, error: str = "") -> list[bytes]:
        end = ReplayEnd(
            boot_id=self._boot_id, topic=topic, first_available=first, last_available=last, next=following, error=error
        )
        return pack(END, 0, encode(end))
