"""Every kind of damage is found, and named; a sound file has none."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from probes.subscriber import Gap, Received, Restart
from tests.workbench import made_events as made
from tests.workbench.recording.made_recording import BOOTS, write
from workbench.recording.mcap_sink import McapSink
from workbench.recording.reader import Recording
from workbench.recording.verify import verify


def findings(tmp_path: Path, items: list[Received]) -> list[str]:
    return list(verify(write(tmp_path / "x.mcap", [made.hello(), *items])))


def test_a_sound_one_has_none(tmp_path: Path) -> None:
    assert list(verify(write(tmp_path / "x.mcap"))) == []


def test_missing_numbers_without_a_gap(tmp_path: Path) -> None:
    found = findings(tmp_path, [made.step(1), made.step(4)])
    assert found == [f"step events 2 to 3 of boot {made.BOOT} are missing, and no gap says so"]


def test_a_gap_that_says_less_than_is_missing(tmp_path: Path) -> None:
    found = findings(tmp_path, [made.step(1), Gap("step", 2, 3, recovered=False), made.step(6)])
    assert found == [f"step events 4 to 5 of boot {made.BOOT} are missing, and no gap says so"]


def test_numbers_twice(tmp_path: Path) -> None:
    found = findings(tmp_path, [made.step(1), made.step(2), made.step(2)])
    assert found == ["an event of step has number 2, after number 2 has been"]
    assert "a gap of step" in findings(tmp_path / "..", [made.step(5), Gap("step", 2, 3, recovered=False)])[0]


def test_restarts(tmp_path: Path) -> None:
    """B89: a restart begins at number 1 again; a gap and a restart are told apart."""
    second = [made.step(number, boot_id=BOOTS[1]) for number in (1, 2)]
    (tmp_path / "a").mkdir()
    assert findings(tmp_path / "a", [made.step(9), Restart(*BOOTS), *second]) == []
    assert findings(tmp_path, [made.step(9), *second]) == [
        f"boot {BOOTS[1]} follows boot {BOOTS[0]} without a restart record"
    ]
    (tmp_path / "b").mkdir()
    late = findings(tmp_path / "b", [made.step(9), Restart(*BOOTS), second[1]])
    assert late == [f"step events 1 to 1 of boot {BOOTS[1]} are missing, and no gap says so"]


def test_an_unfinished_one_is_not_sound(tmp_path: Path) -> None:
    (finding,) = verify(write(tmp_path / "x.mcap", finish=False))
    assert finding.startswith("not finished")


def test_damage_in_a_chunk_is_named_with_what_is_missing_by_it(tmp_path: Path) -> None:
    path = write(tmp_path / "x.mcap", [made.hello(), *(made.step(number) for number in range(1, 41))])
    with Recording.open(path) as recording:
        offset, length = recording.index.offsets[2], recording.index.lengths[2]
    data = bytearray(path.read_bytes())
    data[offset + length - 20] ^= 0xFF
    path.write_bytes(data)
    found = "\n".join(verify(path))
    assert f"the chunk at byte {offset} is damaged" in found
    assert "step events 21 to 30" in found
    assert "the checksum of the data differs" in found
    assert "the summary counts" not in found


def test_damage_in_the_summary(tmp_path: Path) -> None:
    path = write(tmp_path / "x.mcap")
    data = bytearray(path.read_bytes())
    data[-100] ^= 0xFF
    path.write_bytes(data)
    assert "its summary is damaged" in next(verify(path))


def test_damage_between_the_chunks(tmp_path: Path) -> None:
    path = write(tmp_path / "x.mcap")
    with Recording.open(path) as recording:
        after = recording.index.offsets[1] + recording.index.lengths[1]
    data = bytearray(path.read_bytes())
    (size,) = struct.unpack_from("<I", data, after + 11)
    assert data[after] == 7  # a message index
    assert size
    data[after + 15] ^= 0xFF  # a time in it
    path.write_bytes(data)
    assert list(verify(path)) == [
        "the checksum of the data differs: some record outside the chunks' contents is damaged"
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"{}", "is not a step record"), (b"not json", "is not a step record"), (b'{"type":"knob"}', "is not a step")],
)
def test_messages_that_are_none(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.mcap"
    sink = McapSink(path, "made")
    channel = sink.channel("step", "json", "specwb.StepEvent", "jsonschema", b'{"type": "object"}')
    sink.message(channel, 10, 10, 1, data)
    sink.message(channel, 9, 9, 2, data)
    sink.finish()
    found = list(verify(path))
    assert sum(words in finding for finding in found) == 2
    assert any("time runs backwards" in finding for finding in found)


def test_a_channel_without_a_schema(tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    sink = McapSink(path, "made")
    sink.message(sink.channel("step", "json", "", "", b""), 10, 10, 1, b"{}")
    sink.message(sink.channel("knob", "json", "k", "jsonschema", b"[]"), 10, 10, 1, b"{}")
    sink.finish()
    found = list(verify(path))
    assert "channel step has no schema" in found
    assert "the schema of channel knob is no JSON schema of an object" in found


def test_what_cannot_be_opened_is_a_finding(tmp_path: Path) -> None:
    (finding,) = verify(tmp_path / "none.mcap")
    assert "there is no" in finding
