"""The recorder on a real bus: losses, restarts, full disks, and a clean end."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from probes.events import StepEvent
from probes.subscriber import Gap, Restart
from tests.workbench import made_events as made
from tests.workbench.conftest import MakeEngine
from tests.workbench.made_engine import MadeEngine
from workbench.recording.mcap_sink import McapSink
from workbench.recording.part_file import PartFile
from workbench.recording.reader import Recording
from workbench.recording.recorder import Recorder
from workbench.recording.recording_error import RecordingError
from workbench.recording.verify import verify


def until(condition: Callable[[], Any], what: str = "") -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, what or "it did not happen within 30 s"
        time.sleep(0.005)


@contextmanager
def recording(engine: MadeEngine, path: Path, *topics: str) -> Iterator[Recorder]:
    recorder = Recorder(engine.record, path, *([topics] if topics else []))
    recorder.start()
    until(lambda: recorder.status.is_connected or recorder.status.error)
    try:
        yield recorder
    finally:
        recorder.stop()


def steps_of(path: Path) -> list[int]:
    with Recording.open(path) as opened:
        return [item.step for _, item in opened.items(topics=("step",)) if isinstance(item, StepEvent)]


def steps_on_disk(path: Path) -> int:
    with Recording.open(path) as opened:
        return opened.info.counts.get("step", 0)


def test_all_that_the_engine_says_is_in_the_file(engine: MadeEngine, tmp_path: Path) -> None:
    path = tmp_path / "x.mcap"
    with recording(engine, path) as recorder:
        for number in range(50):
            engine.step(1 + number % 8)
        engine.publish(made.alert(t=engine.bus.t()))
        recorder.bookmark("look here")
        until(lambda: recorder.status.events >= 52)
        assert recorder.status.is_recording
    status = recorder.stop()
    assert (status.error, status.lost, status.is_recording) == ("", 0, False)
    assert status.path == path
    assert status.bytes == path.stat().st_size
    assert steps_of(path) == list(range(1, 51))
    assert list(verify(path)) == []
    with Recording.open(path) as opened:
        assert [mark.text for mark in opened.marks() if mark.kind == "bookmark"] == ["look here"]


def test_what_came_is_on_the_disk_soon_and_a_knob_at_once(engine: MadeEngine, tmp_path: Path) -> None:
    path, part = tmp_path / "x.mcap", tmp_path / "x.mcap.part"
    with recording(engine, path):
        engine.step()
        until(lambda: steps_on_disk(part) == 1)
        engine.publish(made.knob_change(2, {"threshold": 4}, {"threshold": 2}, t=engine.bus.t()))

        def knobs() -> int:
            with Recording.open(part) as opened:
                return opened.info.counts.get("knob", 0)

        until(lambda: knobs() == 1)


def test_a_burst_that_the_bus_cannot_hold_is_a_gap_of_exact_numbers(engine: MadeEngine, tmp_path: Path) -> None:
    """B88."""
    path = tmp_path / "x.mcap"
    event, count = made.step(1), 0
    with recording(engine, path) as recorder:

        def burst() -> bool:
            nonlocal count
            for _ in range(20_000):
                engine.bus.publish(event)
            count += 20_000
            until(lambda: recorder.status.events + recorder.status.lost >= count)
            return recorder.status.lost > 0

        until(burst)
        lost = recorder.status.lost
    with Recording.open(path) as opened:
        gaps = [item for _, item in opened.items(topics=("gap",)) if isinstance(item, Gap) and not item.recovered]
        there = [item.seq for _, item in opened.items(topics=("step",)) if isinstance(item, StepEvent)]
        assert opened.lost() == lost == sum(gap.count for gap in gaps)
    missing = {number for gap in gaps for number in range(gap.first, gap.last + 1)}
    assert sorted([*there, *missing]) == list(range(1, count + 1))
    assert list(verify(path)) == []


def test_a_disk_that_stands_still_costs_events_but_no_memory(
    engine: MadeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B87: what waits for the recorder is bounded, the engine publishes on, and every number is accounted for."""
    path, goes_on, real, event = tmp_path / "x.mcap", threading.Event(), McapSink.flush, made.step(1)
    with recording(engine, path) as recorder:

        def stuck(sink: McapSink) -> None:
            goes_on.wait(60)
            real(sink)

        monkeypatch.setattr(McapSink, "flush", stuck)
        for _ in range(60_000):
            engine.bus.publish(event)
        held = recorder.status.events
        assert engine.step() == 1  # nobody waits for the disk
        goes_on.set()
        until(lambda: recorder.status.events + recorder.status.lost >= 60_001)
        assert held < 30_000
    assert recorder.status.lost > 0
    assert recorder.status.error == ""
    assert list(verify(path)) == []


def test_an_engine_that_restarts_is_picked_up(make_engine: MakeEngine, tmp_path: Path) -> None:
    """B89, B96: gap and restart are told apart, and what follows is of the new boot from its first number on."""
    path = tmp_path / "x.mcap"
    first = make_engine()
    with recording(first, path) as recorder:
        for _ in range(5):
            first.step()
        until(lambda: recorder.status.events >= 6)
        first.close()
        second = make_engine(boot_id="c0ffee01")
        for _ in range(7):
            second.step()
        until(lambda: len(steps_of(tmp_path / "x.mcap.part")) == 12)
    assert steps_of(path) == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 6, 7]
    assert recorder.status.error == ""
    assert list(verify(path)) == []
    with Recording.open(path) as opened:
        assert opened.info.boots == [made.BOOT, "c0ffee01"]
        restarts = [item for _, item in opened.items(topics=("restart",))]
        assert restarts == [Restart(made.BOOT, "c0ffee01")]
        assert "restart" in [mark.kind for mark in opened.marks()]


def test_an_engine_that_never_answers_leaves_no_file(engine: MadeEngine, tmp_path: Path) -> None:
    engine.close()
    recorder = Recorder(engine.record, tmp_path / "x.mcap")
    recorder.start()
    status = recorder.stop()
    assert status.error == "nothing was recorded: made did not answer"
    assert not list(tmp_path.iterdir())


class FullDisk:
    """Lets a recording's file take so many bytes, then answers as a full disk does: part of a write, then an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int, code: int = errno.ENOSPC) -> None:
        real = os.write
        self.room = room

        def write(fd: int, data: bytes) -> int:
            if not os.readlink(f"/proc/self/fd/{fd}").endswith(".mcap.part"):
                return real(fd, data)
            if self.room <= 0:
                raise OSError(code, os.strerror(code))
            count = real(fd, bytes(data)[: self.room])
            self.room -= count
            return count

        monkeypatch.setattr(os, "write", write)


@pytest.mark.parametrize(
    ("code", "words"), [(errno.ENOSPC, "the disk is full"), (errno.EIO, "the disk failed (Input/output error)")]
)
def test_a_disk_that_fills_up_ends_the_recording_and_nothing_else(
    engine: MadeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    """B98."""
    path, part = tmp_path / "x.mcap", tmp_path / "x.mcap.part"
    FullDisk(monkeypatch, 20_000, code)
    with recording(engine, path) as recorder:
        until(lambda: bool(engine.step()) and bool(recorder.status.error))
        status = recorder.status
        assert not status.is_recording
        assert status.error == f"recording stopped: {words}; what came before is in {part}"
    assert recorder.stop().error == status.error
    assert engine.step() > 1  # the engine did not notice
    assert status.bytes == part.stat().st_size <= 20_000
    found = steps_of(part)
    assert found
    assert found == list(range(found[0], found[0] + len(found)))
    with Recording.open(part) as opened:
        assert opened.info.bytes == opened.index.whole  # cut to its last whole record
    assert not path.exists()


def test_a_disk_that_is_full_at_the_end(engine: MadeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B98: the summary does not fit."""
    path, part = tmp_path / "x.mcap", tmp_path / "x.mcap.part"
    disk = FullDisk(monkeypatch, 10**9)
    with recording(engine, path) as recorder:
        engine.step()
        until(lambda: steps_on_disk(part) == 1)
        disk.room = 10
        status = recorder.stop()
    assert "the disk is full" in status.error
    assert steps_of(part) == [1]


def test_a_disk_that_says_so_only_when_asked_to_keep_it(
    engine: MadeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B98: some file systems take every write and have no room for it later."""

    def fail(_: PartFile) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("workbench.recording.recorder.SYNC_S", 0.01)
    monkeypatch.setattr(PartFile, "sync", fail)
    with recording(engine, tmp_path / "x.mcap") as recorder:
        until(lambda: bool(engine.step()) and bool(recorder.status.error))
    assert "the disk is full" in recorder.status.error


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "specwb-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a disk can only be mounted by root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_real_disk_of_two_megabytes(engine: MadeEngine, small_disk: Path) -> None:
    """B98."""
    path, part = small_disk / "x.mcap", small_disk / "x.mcap.part"
    (small_disk / "ballast").write_bytes(os.urandom(900_000))
    with recording(engine, path) as recorder:
        stop = threading.Event()

        def load() -> None:
            while not stop.is_set():
                engine.publish(made.alert(os.urandom(1500).hex(), t=engine.bus.t()))
                time.sleep(0.001)

        thread = threading.Thread(target=load)
        thread.start()
        until(lambda: recorder.status.error)
        stop.set()
        thread.join()
    assert "the disk is full" in recorder.status.error
    with Recording.open(part) as opened:
        assert opened.info.counts["alert"] > 100
        assert len(list(opened.items())) == sum(opened.info.counts.values())
    with pytest.raises(RecordingError, match="is full"):
        PartFile(small_disk / "y.mcap")


def test_what_cannot_begin_says_why(engine: MadeEngine, tmp_path: Path) -> None:
    (tmp_path / "x.mcap").touch()
    with pytest.raises(RecordingError, match="never overwritten"):
        Recorder(engine.record, tmp_path / "x.mcap").start()
    with pytest.raises(ValueError, match="unknown topic 'stepp'"):
        Recorder(engine.record, tmp_path / "y.mcap", ("stepp",))


def test_a_bug_is_said_and_keeps_what_was_there(
    engine: MadeEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = tmp_path / "x.mcap.part"
    with recording(engine, tmp_path / "x.mcap") as recorder:
        engine.step()
        until(lambda: steps_on_disk(part) == 1)

        def broken(*_: object) -> bool:
            raise KeyError("oh")

        monkeypatch.setattr("workbench.recording.writer.RecordingWriter.write", broken)
        until(lambda: bool(engine.step()) and bool(recorder.status.error))
    assert "a bug in specwb, KeyError: 'oh'" in recorder.status.error
    assert steps_of(part) == [1]
