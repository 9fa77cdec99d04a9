"""What the program behind ``replay --live`` says besides its result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.rerun_program import EXIT_CANNOT, EXIT_IDENTICAL, limits_of, main
from probes.session_script import SessionScript
from tests.engine.tiny import plain_engine


def script(**changes: Any) -> SessionScript:
    given: dict[str, Any] = {
        "source": "x.mcap",
        "model": {"name": "tiny-random", "dtype": "float32"},
        "draft": None,
        "config": {"model": "tiny-random", "kv_tokens": 512, "page_size": 16, "max_model_len": 64},
        "knobs": {},
        "step": 0,
        "actions": [],
        "skipped": 2,
        "notes": ["2 requests skipped"],
    }
    return SessionScript(**{**given, **changes})


def test_why_tokens_may_differ_is_said() -> None:
    assembly = plain_engine().assembly
    assert limits_of(script(), assembly) == []
    other = script(model={"weights": "bfloat16", "half_precision": True}, draft={"name": "head"})
    said = limits_of(other, assembly)
    assert "is half precision: where two tokens are nearly as likely, another may win" in said[0]
    assert "the arithmetic was bfloat16 and is float64 here" in said[1]
    assert "the recorded engine had a draft model and this one has none" in said[2]


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({}, EXIT_IDENTICAL, "specwb: 2 requests skipped"),
        ({"config": {"model": "nowhere"}}, EXIT_CANNOT, "give the same files as --model"),
        ({"config": {"device": "tpu"}}, EXIT_CANNOT, "not of this version"),
        ({"config": {"model": "tiny-random", "max_running": 0}}, EXIT_CANNOT, "cannot be built here: --max-running"),
    ],
)
def test_notes_and_refusals_go_to_stderr(
    tmp_path: Path, changes: dict[str, Any], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(msgspec.json.encode(script(**changes)))
    assert main(["--script", str(path), "--json"]) == code
    captured = capsys.readouterr()
    assert words in captured.err
    assert bool(captured.out) == (code == EXIT_IDENTICAL)
