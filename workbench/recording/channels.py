"""The channels of a recording: one a topic of the bus and one a side record, each with its JSON schema inside the file.

Foxglove reads a JSON schema only in a plain form: ``type`` on every property, no references, no alternatives. So every
reference is written out, and a field that may be null is absent from a message instead. The few that may be null and
are required (or lie deeper) are described under ``patternProperties``, which is as valid and which it passes over.
"""

from __future__ import annotations

from typing import Any

import msgspec

from probes.events import TOPICS, Event
from workbench.recording.side_records import SIDE_CHANNELS, SideRecord

MESSAGE_ENCODING = "json"
SCHEMA_ENCODING = "jsonschema"

ALWAYS = ("hello", "knob", "alert")
"""Recorded whatever was asked for: who the engine is, and what the marks are made of."""
DEFAULT_TOPICS = ("step", "request", "knob", "alert", "drop", "heartbeat", "hello")
"""All but ``rows``, which an engine makes only for those who ask."""

CHANNELS: dict[str, type[msgspec.Struct]] = {**TOPICS, **SIDE_CHANNELS}

_decoders: dict[str, msgspec.json.Decoder[Any]] = {name: msgspec.json.Decoder(kind) for name, kind in CHANNELS.items()}


def encode(record: Event | SideRecord) -> bytes:
    """A message's JSON; fields that are null and optional are left out."""
    fields: dict[str, Any] = msgspec.to_builtins(record)
    for name in _OPTIONAL[type(record)]:
        if fields[name] is None:
            del fields[name]
    return msgspec.json.encode(fields)


def decode(channel: str, data: bytes | memoryview) -> Event | SideRecord:
    """What a message of a known channel says; fields that this version does not know are skipped.

    Raises:
        msgspec.MsgspecError: it is not such a message.
        KeyError: an unknown channel.
    """
    record: Event | SideRecord = _decoders[channel].decode(data)
    return record


def schema_of(channel: str) -> bytes:
    """The JSON schema of a channel's messages."""
    kind = CHANNELS[channel]
    whole = msgspec.json.schema(kind)
    (root,) = [name for name in whole["$defs"] if whole["$ref"].endswith(f"/{name}")]
    schema = _plain(whole["$defs"][root], whole["$defs"], _OPTIONAL[kind])
    return msgspec.json.encode({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def _optional(kind: type[msgspec.Struct]) -> frozenset[str]:
    """Fields that are null when nothing was said."""
    return frozenset(field.name for field in msgspec.structs.fields(kind) if field.default is None)


_OPTIONAL: dict[type, frozenset[str]] = {kind: _optional(kind) for kind in CHANNELS.values()}


def _plain(schema: dict[str, Any], defs: dict[str, Any], optional: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The same schema without references and alternatives; ``optional``: fields that are absent rather than null."""
    if "$ref" in schema:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = defs[schema["$ref"].rsplit("/", 1)[1]] | rest
    made = {key: value for key, value in schema.items() if key not in ("properties", "default")}
    if "enum" in made:
        made.setdefault("type", "string")
    if "items" in made:
        made["items"] = _plain(made["items"], defs)
    if isinstance(made.get("additionalProperties"), dict):
        made["additionalProperties"] = _plain(made["additionalProperties"], defs)
    if made.get("type") == "object":
        made["properties"], free = {}, {}
        for name, field in schema.get("properties", {}).items():
            kinds = [_plain(kind, defs) for kind in field.get("anyOf", [field]) if kind.get("type") != "null"]
            is_plain = len(kinds) == 1 and "type" in kinds[0] and ("anyOf" not in field or name in optional)
            if is_plain:
                made["properties"][name] = kinds[0]
            else:
                free[f"^{name}$"] = {"anyOf": [*kinds, {"type": "null"}]} if "anyOf" in field else kinds[0]
        if free:
            made["patternProperties"] = free
    return made
