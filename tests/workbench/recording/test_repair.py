"""What is left of a recording becomes a whole one."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.subscriber import Received
from tests.workbench import made_events as made
from tests.workbench.recording.made_recording import session, write
from workbench.recording.reader import Recording
from workbench.recording.recording_error import RecordingError
from workbench.recording.repair import repair, repaired_path
from workbench.recording.verify import verify
from workbench.recording.writer import RecordingWriter


def test_a_cut_file_everywhere_it_may_be_cut(tmp_path: Path) -> None:
    data = write(tmp_path / "x.mcap").read_bytes()
    part = tmp_path / "cut.mcap.part"
    saved = 0
    for number, size in enumerate(range(len(data) // 3, len(data), 1_500)):
        part.write_bytes(data[:size])
        target = tmp_path / f"{number}.mcap"
        result = repair(part, target)
        assert part.read_bytes() == data[:size]
        assert list(verify(target)) == []
        with Recording.open(target) as recording:
            found = [item for _, item in recording.items()]
            assert recording.info.about["engine"] == "demo"
            assert recording.info.repaired == result.lost_text
        assert found == session()[: len(found)]
        assert result.saved >= len(found)
        saved = max(saved, len(found))
    assert saved == len(session())


def test_a_damaged_chunk_becomes_a_gap(tmp_path: Path) -> None:
    path = write(tmp_path / "x.mcap")
    with Recording.open(path) as recording:
        offset, length = recording.index.offsets[2], recording.index.lengths[2]
    data = bytearray(path.read_bytes())
    data[offset + length - 20] ^= 0xFF
    path.write_bytes(data)
    result = repair(path, tmp_path / "y.mcap")
    assert result.chunks_lost == 1
    assert result.events_missing > 0
    assert "1 damaged chunk" in result.lost_text
    assert list(verify(result.path)) == []
    with Recording.open(result.path) as recording:
        assert recording.lost() == 4 + result.events_missing


def test_a_lost_restart_is_noted_again(tmp_path: Path) -> None:
    items: list[Received] = [
        made.hello(),
        made.step(1),
        made.step(1, boot_id="c0ffee01"),
        made.step(1, boot_id="c0ffee01"),
    ]
    result = repair(write(tmp_path / "x.mcap", items, finish=False), tmp_path / "y.mcap")
    assert result.dropped == 1  # a number twice
    assert list(verify(result.path)) == []
    with Recording.open(result.path) as recording:
        assert recording.info.boots == [made.BOOT, "c0ffee01"]


def test_names() -> None:
    assert repaired_path(Path("a/x.mcap.part")) == Path("a/x.repaired.mcap")
    assert repaired_path(Path("x.mcap")) == Path("x.repaired.mcap")


def test_nothing_is_touched_that_should_not_be(tmp_path: Path) -> None:
    part = write(tmp_path / "x.mcap", finish=False)
    (tmp_path / "there.mcap").write_bytes(b"there")
    with pytest.raises(RecordingError, match="never overwritten"):
        repair(part, tmp_path / "there.mcap")
    empty = tmp_path / "empty.mcap.part"
    empty.write_bytes(part.read_bytes()[:30])
    with pytest.raises(RecordingError, match="nothing to save"):
        repair(empty, tmp_path / "y.mcap")
    writer = RecordingWriter(tmp_path / "live.mcap", ("step",))
    with pytest.raises(RecordingError, match="is being recorded now"):
        repair(writer.sink.file.part, tmp_path / "y.mcap")
    writer.sink.file.close()
    assert not (tmp_path / "y.mcap").exists()
    assert not (tmp_path / "y.mcap.part").exists()


def test_where_no_message_can_be_read_nothing_is_made(tmp_path: Path) -> None:
    path, target = write(tmp_path / "x.mcap"), tmp_path / "y.mcap"
    with Recording.open(path) as recording:
        chunks = list(zip(recording.index.offsets, recording.index.lengths, strict=True))
    data = bytearray(path.read_bytes())
    for offset, length in chunks:
        data[offset + length - 20] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(RecordingError, match="nothing to save"):
        repair(path, target)
    assert sorted(tmp_path.iterdir()) == [path]
