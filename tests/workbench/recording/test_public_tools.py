"""A recording in the hands of the public MCAP library, as Foxglove and anyone's script would open it."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from mcap.reader import NonSeekingReader, make_reader

from tests.workbench.recording.made_recording import BOOTS, write
from workbench.recording.channels import CHANNELS


def test_every_channel_is_json_with_a_json_schema_that_its_messages_follow(tmp_path: Path) -> None:
    validators: dict[str, jsonschema.Draft202012Validator] = {}
    with write(tmp_path / "x.mcap").open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        assert summary is not None
        assert summary.statistics is not None
        count = 0
        for schema, channel, message in reader.iter_messages():
            assert schema is not None
            assert (channel.message_encoding, schema.encoding) == ("json", "jsonschema")
            if channel.topic not in validators:
                described = json.loads(schema.data)
                jsonschema.Draft202012Validator.check_schema(described)
                validators[channel.topic] = jsonschema.Draft202012Validator(described)
            said = json.loads(message.data)
            validators[channel.topic].validate(said)
            assert said["type"] == channel.topic
            assert message.sequence == said.get("seq", 0) or channel.topic == "malformed"
            count += 1
        assert count == summary.statistics.message_count
        assert summary.statistics.chunk_count == len(summary.chunk_indexes)
        assert all(index.compression == "zstd" for index in summary.chunk_indexes)
        (about,) = [record for record in reader.iter_metadata() if record.name == "specwb"]
        assert about.metadata["boot_id"] == BOOTS[0]
        assert about.metadata["schema_version"] == "1"
        assert reader.get_header().profile == "specwb"
    assert set(validators) == set(CHANNELS)


def test_the_librarys_seek_finds_what_was_recorded_then(tmp_path: Path) -> None:
    with write(tmp_path / "x.mcap").open("rb") as file:
        reader = make_reader(file)
        start = 1_700_000_000_000_000_000
        half, whole = start + 500_000_000, start + 1_000_000_000
        found = reader.iter_messages(topics="step", starting_at=half, ending_before=whole)
        assert [json.loads(message.data)["step"] for _, _, message in found] == [5, 6, 7, 8, 9]


def test_an_unfinished_one_is_read_without_seeking(tmp_path: Path) -> None:
    steps = []
    with write(tmp_path / "x.mcap", finish=False).open("rb") as file:
        try:
            for _, _, message in NonSeekingReader(file).iter_messages("step", log_time_order=False):
                steps.append(json.loads(message.data)["seq"])
        except Exception:  # the library ends in an error where the file ends; all before it was given
            pass
    assert len(steps) == 58
