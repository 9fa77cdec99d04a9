"""Commands that can be typed as they are printed."""

from __future__ import annotations

import shutil
import sys

import pytest

from workbench.own_command import own_command


@pytest.mark.parametrize(
    ("found", "started", "begins"),
    [
        ("bin/specwb", ".venv/bin/specwb", "specwb"),
        (None, ".venv/bin/specwb", ".venv/bin/specwb"),
        (None, "a b/specwb", "'a b/specwb'"),
        (None, "specwb", "specwb"),
        (None, "src/workbench/__main__.py", "python -m workbench"),
        (None, "bin/pytest", "specwb"),
    ],
)
def test_it_begins_with_what_the_shell_finds(
    monkeypatch: pytest.MonkeyPatch, found: str | None, started: str, begins: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: found)
    monkeypatch.setattr(sys, "argv", [started, "demo"])
    monkeypatch.setattr(sys, "executable", "python")
    assert own_command("replay", "my file.mcap") == f"{begins} replay 'my file.mcap'"
