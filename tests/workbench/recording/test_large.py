"""Beyond four gigabytes, without writing them."""

from __future__ import annotations

import resource
import struct
from pathlib import Path

import pytest

from tests.workbench import made_events as made
from workbench.recording.channels import DEFAULT_TOPICS
from workbench.recording.reader import Recording
from workbench.recording.writer import RecordingWriter

HOLE = 9 << 29  # 4.5 GiB


@pytest.mark.parametrize("is_finished", [True, False])
def test_places_beyond_four_gigabytes(tmp_path: Path, is_finished: bool) -> None:
    """B100: a sparse file with a record of 4.5 GiB in its middle, which readers pass over."""
    writer = RecordingWriter(tmp_path / "x.mcap", DEFAULT_TOPICS)
    writer.begin(made.hello())
    for number in range(1, 201):
        writer.write(made.step(number))
        if number == 100:
            writer.sink.flush()
            file = writer.sink.file
            file.write(struct.pack("<BQ", 0x90, HOLE))
            file.cut(file.tell() + HOLE)
        if number % 10 == 0:
            writer.sink.flush()
    if is_finished:
        writer.finish()
        path = tmp_path / "x.mcap"
    else:
        writer.sink.file.close()
        path = writer.sink.file.part
    assert path.stat().st_size > HOLE
    assert path.stat().st_blocks * 512 < 10 << 20
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with Recording.open(path) as recording:
        assert recording.info.is_finished is is_finished
        assert recording.info.counts["step"] == 200
        for number in (1, 99, 101, 200):
            ((_, step),) = recording.before(made.T0 + number * 0.1 + 0.01, "step", 1)
            assert step == made.step(number)
        assert len(list(recording.items(topics=("step",)))) == 200
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100 * 1024  # kilobytes
