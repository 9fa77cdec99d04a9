"""Messages and the schemas that describe them."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import msgspec
import pytest

from probes.events import TOPICS
from probes.subscriber import Gap, Malformed, Restart
from tests.workbench import made_events as made
from tests.workbench.recording.made_recording import BOOTS, session
from workbench.recording.channels import CHANNELS, decode, encode, schema_of
from workbench.recording.side_records import MarkRecord, side_record

PLAIN = {"string", "number", "integer", "boolean", "object", "array"}


def records() -> list[Any]:
    incidents = Gap | Restart | Malformed
    found = [side_record(item, BOOTS[0]) if isinstance(item, incidents) else item for item in session()]
    return [*found, MarkRecord(kind="bookmark", text="here"), made.hello(draft=None)]


def check_foxglove(schema: dict[str, Any], where: str) -> None:
    """The form in which Foxglove reads a JSON schema."""
    assert schema["type"] == "object", where
    for name, field in schema["properties"].items():
        assert field.get("type") in PLAIN, f"{where}.{name}: {field}"
        assert "oneOf" not in field
        if field["type"] == "object":
            check_foxglove(field, f"{where}.{name}")
        if field["type"] == "array":
            assert field["items"]["type"] in PLAIN - {"array"}, f"{where}.{name}"
            if field["items"]["type"] == "object":
                check_foxglove(field["items"], f"{where}.{name}[]")


@pytest.mark.parametrize("channel", CHANNELS)
def test_schemas_are_valid_self_contained_and_plain_enough_for_foxglove(channel: str) -> None:
    schema = json.loads(schema_of(channel))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "$ref" not in json.dumps(schema)
    check_foxglove(schema, channel)


def test_every_field_is_described_somewhere() -> None:
    for channel, kind in CHANNELS.items():
        schema = json.loads(schema_of(channel))
        patterns = {pattern.strip("^$") for pattern in schema.get("patternProperties", {})}
        assert {*schema["properties"], *patterns} == {*kind.__struct_fields__, "type"}


def test_every_message_follows_its_schema_and_comes_back_equal() -> None:
    validators = {name: jsonschema.Draft202012Validator(json.loads(schema_of(name))) for name in CHANNELS}
    seen = set()
    for record in records():
        channel = str(type(record).__struct_config__.tag)
        message = encode(record)
        validators[channel].validate(json.loads(message))
        assert decode(channel, message) == record
        seen.add(channel)
    assert seen == set(CHANNELS)


def test_what_is_null_and_optional_is_left_out() -> None:
    plain = json.loads(encode(made.step(1, 8)))
    assert "accept_length" not in plain
    assert "spec_info" not in plain
    assert json.loads(encode(made.hello(draft=None)))["draft"] is None  # required: it stays
    assert {name for name in TOPICS if "accept_length" in json.loads(schema_of(name))["properties"]} == {
        "step",
        "request",
    }


def test_a_field_of_the_future_is_skipped() -> None:
    """B99."""
    message = json.loads(encode(made.step(1))) | {"of_the_future": {"deep": [1, 2]}}
    assert decode("step", msgspec.json.encode(message)) == made.step(1)
