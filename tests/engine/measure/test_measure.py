"""The measurements of docs/performance.md, each run on the tiny model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from engine.host_worker import HostWorker
from engine.measure.__main__ import main

TINY = ["--model", "tiny-random", "--dtype", "float32"]
RATIO = r"\d+\.\d+ \[\d+\.\d+, \d+\.\d+\] of 2 pairs"


@pytest.fixture
def prompts(tmp_path: Path) -> str:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"id": "one", "prompt": "Hello."}\n{"id": "two", "prompt": "What now?"}\n')
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main([*arguments, *TINY]) == 0
    return capsys.readouterr().out.splitlines()


def test_accept(capsys: pytest.CaptureFixture[str], prompts: str) -> None:
    lines = printed(capsys, "accept", "--prompts", prompts, "--tokens", "6")
    assert [line.split("accept length")[0].strip() for line in lines] == ["chain of 2", "4/2/16", "4/3/16"]
    assert all(
        re.search(r"accept length \d\.\d+, emitted / verifies \d\.\d+ \(\d+ verifies, float32\)", x) for x in lines
    )


def test_step(capsys: pytest.CaptureFixture[str]) -> None:
    header, *lines = printed(capsys, "step", "--clients", "1,2", "--context", "20", "--pairs", "2")
    assert header.startswith("plain step / floor, context 20")
    assert len(lines) == 4
    assert all(re.search(rf"requests, (torch's|our) products *: {RATIO}; step", line) for line in lines)


def test_pays(capsys: pytest.CaptureFixture[str], prompts: str) -> None:
    header, line = printed(capsys, "pays", "--prompts", prompts, "--tokens", "4", "--pairs", "2")
    assert header.startswith("on / off, topk/steps/draft tokens 4/2/16")
    assert re.search(rf"1 clients: {RATIO}; off \d+\.\d tok/s, on \d+\.\d tok/s, accept length \d", line)


def test_off(capsys: pytest.CaptureFixture[str], prompts: str) -> None:
    header, *lines = printed(capsys, "off", "--prompts", prompts, "--tokens", "4", "--pairs", "2", "--clients", "1,2")
    assert header.startswith("off / without a head, 4 tokens a request")
    assert [line.split()[0] for line in lines] == ["1", "2"]
    assert all(re.search(rf"clients: {RATIO}; with \d+\.\d tok/s, without \d+\.\d tok/s", line) for line in lines)


def test_prompts_that_are_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["accept", "--prompts", "/nowhere", *TINY]) == 2
    assert "/nowhere" in capsys.readouterr().err


def test_a_file_without_prompts(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    assert main(["off", "--prompts", str(tmp_path / "empty"), *TINY]) == 2
    assert "no prompts; expected one" in capsys.readouterr().err


def test_no_clients(capsys: pytest.CaptureFixture[str], prompts: str) -> None:
    with pytest.raises(SystemExit):
        main(["pays", "--prompts", prompts, "--clients", "4,0", *TINY])
    assert "expected counts of at least 1" in capsys.readouterr().err


def test_off_of_a_model_without_a_head(
    capsys: pytest.CaptureFixture[str], prompts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostWorker, "algorithm", None)
    assert main(["off", "--prompts", prompts, *TINY]) == 2
    assert "tiny-random has no head of its own: there is nothing to compare" in capsys.readouterr().err
