"""Sizes in words."""

from __future__ import annotations

from workbench.recording.file_size import size_text


def test_the_unit_follows_the_size() -> None:
    assert [size_text(n) for n in (0, 640_000, 1_234_567, 3_400_000_000)] == ["0 kB", "640 kB", "1.2 MB", "3.4 GB"]
