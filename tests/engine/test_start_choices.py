"""What `auto` and 0 become, and what a machine without a GPU refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from engine import start_choices
from engine.config import EngineConfig
from engine.start_choices import choose_start


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that says it has one; nothing here touches it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def settled(**options: Any) -> EngineConfig:
    return choose_start(EngineConfig(**options)).config


def test_the_cpu_gets_its_own_worker_and_waits_for_each_step() -> None:
    config = settled()
    assert (config.worker, config.scheduler) == ("host", "sync")
    assert (config.page_size, config.prefill_chunk, config.kv_tokens) == (256, 256, 32768)


@pytest.mark.usefixtures("gpu")
def test_a_gpu_gets_the_device_worker_overlap_and_bfloat16() -> None:
    choices = choose_start(EngineConfig(device="cuda"))
    config = choices.config
    assert (config.worker, config.scheduler) == ("device", "overlap")
    assert (config.page_size, config.prefill_chunk, config.kv_tokens) == (64, 8192, 0)
    assert (choices.arithmetic.name, choices.arithmetic.activations) == ("bfloat16", torch.bfloat16)
    assert choices.why["scheduler"].startswith("auto on cuda: ")
    assert choices.device == torch.device("cuda", 0)


def test_the_device_worker_runs_on_the_cpu_too() -> None:
    config = settled(worker="device", dtype="float32")
    assert (config.worker, config.scheduler, config.page_size, config.kv_tokens) == ("device", "sync", 64, 32768)


def test_what_is_given_stays() -> None:
    given = {"scheduler": "overlap", "page_size": 32, "prefill_chunk": 100, "kv_tokens": 640}
    config = settled(**given)
    assert {name: getattr(config, name) for name in given} == given
    assert choose_start(EngineConfig(scheduler="overlap")).why["scheduler"].startswith("asked for: ")


@pytest.mark.usefixtures("no_gpu")
@pytest.mark.parametrize(("built_with", "words"), [("13.0", "torch finds no GPU here"), (None, "built for CPUs only")])
def test_cuda_without_a_gpu_is_refused(built_with: str | None, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", built_with)
    with pytest.raises(ValueError, match=rf"--device cuda: .*{words}.*; start with --device cpu"):
        settled(device="cuda")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attention": "flashinfer"}, "--attention flashinfer runs on a GPU; start with --device cuda"),
        ({"attention": "triton"}, "--attention triton runs on a GPU; start with --device cuda"),
        ({"worker": "device", "dtype": "float16"}, "start with --dtype bfloat16 or float32"),
    ],
)
def test_what_the_cpu_cannot_serve_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        settled(**options)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"dtype": "float16"},
            "--dtype float16 is for CPUs without bfloat16.*; start with --dtype bfloat16 or float32",
        ),
        ({"worker": "host"}, "worker host runs on the CPU; leave it at auto"),
        ({"kv_tokens": 63}, "--kv-tokens: got 63, expected at least one page of 64"),
    ],
)
def test_what_a_gpu_cannot_serve_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        settled(device="cuda", **options)


@pytest.mark.parametrize(("native", "name"), [(True, "bfloat16"), (False, "float32")])
def test_precision_of_the_device_worker_on_the_cpu(native: bool, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_choices, "has_native_bfloat16", lambda: native)
    assert choose_start(EngineConfig(worker="device")).arithmetic.name == name
