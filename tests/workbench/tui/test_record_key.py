"""The record key: start, how it goes, stop, and what is said when the disk is full."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.workbench.fake_feed import Bench
from tests.workbench.tui.pilots import comes, press, settle, story
from workbench.tui.record_key import RecordKey


@dataclass(frozen=True)
class Status:
    path: Path
    seconds: float = 42.4
    bytes: int = 1_234_567
    lost: int = 0
    error: str = ""
    is_recording: bool = True
    is_connected: bool = True


class FakeRecording:
    """A recording that a test can make fail."""

    made: list[FakeRecording]

    def __init__(self, path: Path) -> None:
        self.status = Status(path)
        self.stopped = threading.Event()
        self.made.append(self)

    def start(self) -> None:
        pass

    def stop(self) -> Status:
        self.stopped.set()
        self.status = replace(self.status, is_recording=False)
        return self.status


@pytest.fixture(autouse=True)
def recordings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[FakeRecording]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(FakeRecording, "made", [], raising=False)
    return FakeRecording.made


async def test_r_starts_and_stops_on_every_view(recordings: list[FakeRecording], tmp_path: Path) -> None:
    bench = Bench(story(), make_recording=FakeRecording)
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "r Rec" in bench.text()
        await press(pilot, bench, "r")
        text = await comes(pilot, bench, " REC  0:42 1.2 MB")
        assert "recording to demo-" in text
        for view in "12345":
            assert " REC  0:42 1.2 MB" in await press(pilot, bench, view)
        recordings[0].status = replace(recordings[0].status, lost=7)
        assert "lost 7" in await press(pilot, bench, "2")
        await press(pilot, bench, "r")
        text = await comes(pilot, bench, "recorded 0:42 (1.2 MB) to")
        assert " REC " not in text
    assert recordings[0].stopped.is_set()
    assert bench.app.recording.has_failed
    assert len(recordings) == 1


async def test_a_full_disk_is_on_the_screen_at_the_next_look(recordings: list[FakeRecording]) -> None:
    """B98: not recording is said in words, and stays there."""
    bench = Bench(story(), make_recording=FakeRecording)
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "r")
        await comes(pilot, bench, " REC ")
        error = "recording stopped: the disk is full; what came before is in x.mcap.part"
        recordings[0].status = replace(recordings[0].status, error=error, is_recording=False)
        bench.app.tick()
        await pilot.pause()
        text = bench.text()
        assert " NOT RECORDING: the disk is full" in text
        assert "what came before is in x.mcap.part" in " ".join(text.split())
        bench.clock.advance(120)
        assert " NOT RECORDING: the disk is full" in await press(pilot, bench, "1")
    assert bench.app.recording.report() == [error]
    assert bench.app.recording.has_failed


async def test_quitting_finishes_the_file_and_its_path_is_said(recordings: list[FakeRecording], tmp_path: Path) -> None:
    bench = Bench(story(), make_recording=FakeRecording)
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "r")
        await comes(pilot, bench, " REC ")
        await pilot.press("q")
    assert recordings[0].stopped.is_set()
    (line,) = bench.app.recording.report()
    assert str(tmp_path / "demo-") in line
    assert not bench.app.recording.has_failed


async def test_what_cannot_start_says_why() -> None:
    def broken(path: Path) -> FakeRecording:
        raise OSError(28, "No space left on device")

    bench = Bench(story(), make_recording=broken)
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        await press(pilot, bench, "r")
        await comes(pilot, bench, "NOT RECORDING: [Errno 28] No space left on device")


async def test_without_a_recorder_there_is_no_key() -> None:
    bench = Bench(story())
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "r Rec" not in await press(pilot, bench, "r")
    assert RecordKey("demo", None).toggle() == "there is nothing to record here"
