"""A recording file, written by the recorder's own writer from items and their times."""

from __future__ import annotations

from pathlib import Path

from probes.clock import FakeClock
from probes.events import HelloEvent
from probes.subscriber import Received
from workbench.recording.channels import DEFAULT_TOPICS
from workbench.recording.writer import RecordingWriter

FLUSH_S = 0.25


def write_recording(path: Path, told: list[tuple[float, Received]], *, finish: bool = True) -> Path:
    """The file; without ``finish`` that of a recorder that was killed."""
    clock = FakeClock(now=told[0][0])
    writer = RecordingWriter(path, DEFAULT_TOPICS, clock=clock)
    hello = told[0][1]
    assert isinstance(hello, HelloEvent)
    writer.begin(hello)
    flushed = now = told[0][0]
    for t, item in told[1:]:
        clock.advance(t - now)
        now = t
        writer.write(item)
        if now - flushed >= FLUSH_S:
            writer.sink.flush()
            flushed = now
    if finish:
        writer.finish()
        return path
    writer.sink.flush()
    writer.sink.file.close()
    return path.with_name(path.name + ".part")
