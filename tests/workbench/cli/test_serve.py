"""What serve hands to the server process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.config import EngineConfig
from engine.server.server_config import StartConfig, read_config
from probes.knobs import Knobs
from workbench.cli import main
from workbench.cli.engine_program import NEEDED, missing_packages
from workbench.cli.serve import build_config, command, config_file
from workbench.exit_codes import ExitCode

ROOT = Path(__file__).parents[3]


def decoded(config: dict[str, Any]) -> StartConfig:
    return msgspec.json.decode(msgspec.json.encode(config), type=StartConfig)


def test_nothing_given_is_the_engines_own_defaults() -> None:
    assert decoded(build_config({}, {})) == StartConfig(engine=EngineConfig(measured_threshold=True))
    assert not decoded(build_config({"threshold": 4}, {})).engine.measured_threshold
    assert not decoded(build_config({}, {"threshold": "0"})).engine.measured_threshold


def test_every_option_reaches_its_field() -> None:
    """Every option of the command, with a value that is not the default, lands where the engine reads it."""
    options: dict[str, Any] = {
        "name": "n",
        "host": "0.0.0.0",
        "port": 1,
        "model": "tiny-random",
        "draft_model": "none",
        "dtype": "float32",
        "device": "cuda",
        "threads": 3,
        "threshold": 7,
        "spec": "on",
        "steps": 3,
        "topk": 2,
        "draft_tokens": 8,
        "draft_sync": "eager",
        "weights": "random",
        "memory_fraction": 0.5,
        "simulate_accept": 2.5,
        "scheduler": "overlap",
        "attention": "torch",
        "graphs": False,
        "max_running": 5,
        "max_queue": 6,
        "max_model_len": 99,
        "kv_tokens": 1000,
        "page_size": 16,
        "prefill_chunk": 32,
        "publish_tokens": True,
        "debug_checks": True,
    }
    assert set(options) == {parameter.name for parameter in command.params} - {"words"}
    config = decoded(build_config(options, {}))
    found = msgspec.structs.asdict(config.engine) | msgspec.structs.asdict(config.engine.knobs)
    found |= msgspec.structs.asdict(config.server)
    assert {name: found[name] for name in options} == options


def test_every_start_option_of_the_engine_has_an_option() -> None:
    fields = {*EngineConfig.__struct_fields__} - {"knobs", "measured_threshold", "worker", "graph_batch_sizes"}
    assert fields <= {parameter.name for parameter in command.params}


def test_knobs_as_words() -> None:
    config = decoded(build_config({"model": "tiny-random"}, {"threshold": "9", "hysteresis": "3"}))
    assert config.engine.knobs == Knobs(threshold=9, hysteresis=3)


def test_a_chain_brings_its_draft_tokens() -> None:
    assert decoded(build_config({"topk": 1, "steps": 3}, {})).engine.knobs == Knobs(topk=1, steps=3, draft_tokens=4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--draft-tokens", "99"], "a tree needs 2 <= draft_tokens <= 1 + topk + (steps - 1) * topk^2 = 21"),
        (["--topk", "1", "--draft-tokens", "9"], "draft_tokens must be steps + 1 = 3"),
        (["--threshold", "-1"], "knob threshold: got -1, expected a whole number from 0 to 4096"),
        (["warp=9"], "unknown knob 'warp'; the knobs are spec, policy, threshold"),
        (["--threshold", "3", "threshold=4"], "threshold is given twice"),
        (["threshold"], "got 'threshold', expected knob=value"),
        (["--spec", "maybe"], "'maybe' is not one of 'auto', 'on', 'off'"),
        (["--port", "70000"], "70000 is not in the range"),
    ],
)
def test_bad_options_are_refused_before_anything_starts(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("something was started"))
    assert main(["serve", *arguments]) == ExitCode.USAGE
    assert message in " ".join(capsys.readouterr().err.split())


def test_config_file_is_what_the_server_reads_and_leaves_nothing() -> None:
    path = config_file(build_config({"name": "n", "port": 0}, {"threshold": "2"}))
    fd = int(path.rpartition("/")[2])
    try:
        assert read_config(Path(path)) == decoded(
            {"server": {"name": "n", "port": 0}, "engine": {"knobs": {"threshold": 2}}}
        )
        assert read_config(Path(path)) == read_config(Path(path)), "it can be read again"
    finally:
        os.close(fd)


def test_missing_engine_names_the_pip_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("workbench.cli.engine_program.missing_packages", lambda: ["torch", "uvicorn"])
    assert main(["serve"]) == ExitCode.MISSING_EXTRA
    assert capsys.readouterr().err == (
        "specwb: the engine is not installed (no torch, uvicorn); run: pip install 'specwb[engine]'\n"
    )


def test_missing_packages_are_found_without_importing() -> None:
    assert missing_packages(["msgspec", "no_such_package_here"]) == ["no_such_package_here"]
    code = (
        "import sys; from workbench.cli.engine_program import missing_packages as m; m(); print('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
    assert "torch" in NEEDED


def test_models_lists_what_is_built_in() -> None:
    """The engine's program takes over: its stdout and its exit code are ours."""
    result = subprocess.run(
        [sys.executable, "-m", "workbench", "models"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "smollm2-135m" in result.stdout
    assert "tiny-random" in result.stdout
