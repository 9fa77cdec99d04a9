"""Frames on the bus: ``[topic, seq as 8 bytes big-endian, msgpack payload]``. docs/wire.md says the same in words."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import msgspec

from probes.events import TOPICS, Event

WELCOME = "~"
"""Prefix of the topics on which the publisher tells one new subscriber that its subscriptions are in force."""

END = "end"
"""First frame of the message that ends a replay."""

MAX_SEQ = 2**63 - 1
"""Largest number that may be asked for; the one behind it must fit into a payload too."""


class WireError(ValueError):
    """A message that does not follow the frame or payload format."""


class Message(NamedTuple):
    """One message, its payload still encoded."""

    topic: str
    seq: int
    payload: bytes


class Welcome(msgspec.Struct, frozen=True, kw_only=True, tag="welcome"):
    """Everything published after this reaches the new subscriber."""

    boot_id: str
    last_seqs: dict[str, int]
    """Topic -> newest sequence number sent before this message."""


class ReplayRequest(msgspec.Struct, frozen=True, kw_only=True, tag="replay"):
    """Send again ``first`` to ``last`` of a topic, both included."""

    topic: str
    first: Annotated[int, msgspec.Meta(le=MAX_SEQ)]
    last: Annotated[int, msgspec.Meta(le=MAX_SEQ)]


class ReplayEnd(msgspec.Struct, frozen=True, kw_only=True, tag="replay_end"):
    """Ends the answer to a replay request."""

    boot_id: str
    topic: str
    first_available: int
    """Oldest sequence number still kept; last_available + 1 when none is."""
    last_available: int
    next: int
    """Ask again from here for the rest; above the request's ``last`` when the answer was complete."""
    error: str = ""
    """Why nothing was sent; empty when all is well."""


_encoder = msgspec.msgpack.Encoder()
_decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {
    topic: msgspec.msgpack.Decoder(kind) for topic, kind in TOPICS.items()
}
_welcome_decoder = msgspec.msgpack.Decoder(Welcome)

encode = _encoder.encode


def pack(topic: str, seq: int, payload: bytes) -> list[bytes]:
    """The frames of a message."""
    return [topic.encode(), seq.to_bytes(8, "big"), payload]


def unpack(frames: list[bytes]) -> Message:
    """The message in these frames.

    Raises:
        WireError: wrong number or size of frames; says what came and what was expected.
    """
    if len(frames) != 3:
        raise WireError(f"got {len(frames)} frames, expected 3: topic, sequence number, payload")
    topic, seq, payload = frames
    if len(seq) != 8:
        raise WireError(f"sequence number of {len(seq)} bytes, expected 8 (unsigned, big-endian)")
    try:
        return Message(topic.decode("ascii"), int.from_bytes(seq, "big"), payload)
    except UnicodeDecodeError:
        raise WireError(f"topic {topic[:40]!r} is not ASCII") from None


def encode_event(event: Event, seq: int) -> bytes:
    """The payload of an event, with its sequence number set."""
    return _encoder.encode(msgspec.structs.replace(event, seq=seq))


def decode_event(message: Message) -> Event:
    """The event of a message; fields that this version does not know are skipped.

    Raises:
        WireError: an unknown topic, a payload that is not the topic's event, or numbers that disagree.
    """
    decoder = _decoders.get(message.topic)
    if decoder is None:
        raise WireError(f"unknown topic {message.topic[:40]!r}; known are {', '.join(TOPICS)}")
    try:
        event: Event = decoder.decode(message.payload)
    except msgspec.MsgspecError as error:
        raise WireError(f"payload of {len(message.payload)} bytes is not a {message.topic} event: {error}") from None
    if event.seq != message.seq:
        raise WireError(f"sequence number {message.seq} in the frame, {event.seq} in the payload")
    return event


def decode_welcome(message: Message) -> Welcome:
    """The welcome in a message on a ``~`` topic.

    Raises:
        WireError: it is not one.
    """
    try:
        return _welcome_decoder.decode(message.payload)
    except msgspec.MsgspecError as error:
        raise WireError(f"payload on topic {message.topic[:40]!r} is not a welcome: {error}") from None
