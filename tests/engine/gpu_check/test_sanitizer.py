"""The run that memcheck watches, without memcheck."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.gpu_check.sanitizer import TOOL, find_tool, short_run


@pytest.mark.parametrize("how", ["graphs", "eager"])
def test_the_short_run_comes_to_its_end(how: str, capsys: pytest.CaptureFixture[str]) -> None:
    short_run(how, device="cpu")
    assert capsys.readouterr().out == "short run ended\n"


def test_the_tool_is_found_in_the_toolkit_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    assert find_tool() is None
    tool = tmp_path / "cuda" / "bin" / TOOL
    tool.parent.mkdir(parents=True)
    tool.touch(mode=0o755)
    assert find_tool() == str(tool)
