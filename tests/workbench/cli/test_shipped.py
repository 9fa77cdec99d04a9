"""Recordings that come with specwb, by their bare names."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.cli.shipped import recording_path, shipped_names
from workbench.recording.reader import Recording


def test_each_opens_and_is_finished() -> None:
    assert shipped_names() == ["160-vs-2", "by-hand", "ramp"]
    for name in shipped_names():
        with Recording.open(recording_path(name)) as recording:
            assert recording.info.is_finished
            assert recording.info.bytes < 2_000_000


def test_a_file_of_that_name_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ramp").write_bytes(b"")
    assert recording_path("ramp") == Path("ramp")
    assert recording_path("nothing") == Path("nothing")
