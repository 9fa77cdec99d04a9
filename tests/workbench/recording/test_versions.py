"""Recordings of the past open for ever; those of the future are told apart."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from mcap.writer import Writer

from probes.events import SCHEMA_VERSION
from tests.workbench import made_events as made
from tests.workbench.recording.made_recording import BOOTS, session, write
from workbench.recording.mcap_sink import McapSink
from workbench.recording.reader import ABOUT, Recording
from workbench.recording.recording_error import RecordingError
from workbench.recording.verify import verify

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_one_file_of_every_schema_version_is_kept_and_opens(version: int) -> None:
    """B99: schema-1.mcap was written once by made_recording.write and is never written again."""
    path = GOLDEN / f"schema-{version}.mcap"
    assert list(verify(path)) == []
    with Recording.open(path) as recording:
        assert recording.info.about["schema_version"] == str(version)
        assert recording.info.boots == list(BOOTS)
        assert recording.info.counts["step"] == 58
        items = [item for _, item in recording.items()]
        assert len(items) == len(session())
        assert [type(item).__name__ for item in items] == [type(item).__name__ for item in session()]
        assert [mark.kind for mark in recording.marks()][:3] == ["switch", "knob", "switch"]


def test_a_newer_major_schema_is_refused_by_name(tmp_path: Path) -> None:
    """B99."""
    path = write(tmp_path / "new.mcap", [made.hello(schema_version=SCHEMA_VERSION + 1), made.step(1)])
    with pytest.raises(RecordingError, match=rf"event schema {SCHEMA_VERSION + 1}; this one reads up to schema 1"):
        Recording.open(path)


def test_unknown_fields_channels_and_records_are_passed_over(tmp_path: Path) -> None:
    """B99: what a later version adds within the same major version."""
    path = tmp_path / "later.mcap"
    sink = McapSink(path, "of the future")
    sink.metadata(ABOUT, {"schema_version": "1", "boot_id": made.BOOT, "of_the_future": "yes"})
    sink.metadata("specwb.of_the_future", {"a": "b"})
    step = sink.channel("step", "json", "specwb.StepEvent", "jsonschema", b'{"type": "object"}')
    other = sink.channel("of_the_future", "json", "specwb.Other", "jsonschema", b'{"type": "object"}')
    foreign = sink.channel("step", "protobuf", "", "", b"")  # our topic's name, in what is none of our encodings
    for number in (1, 2):
        fields = json.loads(json.dumps({**_step(number), "new_field": [1, {"x": 2}]}))
        sink.message(step, number * 10**9, number * 10**9, number, json.dumps(fields).encode())
        sink.message(other, number * 10**9, number * 10**9, number, b'{"hello": 1}')
        sink.message(foreign, number * 10**9, number * 10**9, number, b"\x00\x01")
        sink.flush()
        sink.file.write(struct.pack("<BQ", 0x90, 5) + b"later")  # a record type of the future
    sink.finish()
    with Recording.open(path) as recording:
        assert [item for _, item in recording.items()] == [made.step(1), made.step(2)]
        assert recording.info.counts["of_the_future"] == 2
    cut = tmp_path / "cut.mcap.part"
    cut.write_bytes(path.read_bytes()[:-200])
    with Recording.open(cut) as recording:
        assert [item for _, item in recording.items()] == [made.step(1), made.step(2)]


def test_an_mcap_file_of_another_program_is_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "robot.mcap"
    with path.open("wb") as out:
        writer = Writer(out)
        writer.start("ros2")
        channel = writer.register_channel("/camera", "cdr", writer.register_schema("Image", "ros2msg", b"x"))
        writer.add_message(channel, 1, b"\x00", 1)
        writer.finish()
    with pytest.raises(RecordingError, match="is an MCAP file, but not of specwb: its channels are /camera"):
        Recording.open(path)


def _step(number: int) -> dict[str, object]:
    from workbench.recording.channels import encode

    return dict(json.loads(encode(made.step(number))))
