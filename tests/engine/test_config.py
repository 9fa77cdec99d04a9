"""Start options out of range are refused by name, whoever passes them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.assembly import assemble
from engine.config import EngineConfig
from probes.knobs import Knobs
from tests.engine.tiny import tiny_target


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_running": 0}, "--max-running: got 0, expected at least 1"),
        ({"prefill_chunk": -1}, "--prefill-chunk: got -1, expected at least 0"),
        ({"max_model_len": 1}, "--max-model-len: got 1, expected at least 2"),
        ({"page_size": -1}, "--page-size: got -1, expected at least 0"),
        ({"threads": -1}, "--threads: got -1, expected at least 0"),
        ({"kv_tokens": 15, "page_size": 16}, "--kv-tokens: got 15, expected at least one page of --page-size 16"),
        ({"kv_tokens": 255}, "--kv-tokens: got 255, expected at least one page of 256"),
        ({"memory_fraction": 0.0}, "--memory-fraction: got 0, expected more than 0 and at most 1"),
        ({"memory_fraction": 1.5}, r"--memory-fraction: got 1\.5, expected"),
        ({"graph_batch_sizes": (4, 0)}, r"graph_batch_sizes: got \[4, 0\], expected sizes of at least 1"),
        ({"simulate_accept": 0.5}, r"--simulate-accept: got 0\.5, expected 1 to 3"),
        ({"simulate_accept": 3.1}, r"--simulate-accept: got 3\.1, expected 1 to 3.* at most --steps 2 drafts"),
        ({"model": "shape:llama-3.1-8b"}, "a shape without weights; start it with --weights random"),
        ({"weights": "random"}, "smollm2-135m has weights of its own; .*--model shape:llama-3.1-8b"),
        ({"knobs": Knobs(topk=1)}, "topk=1 is a chain"),
    ],
)
def test_refused_by_name_before_anything_loads(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        assemble(EngineConfig(**options), target=tiny_target())


def test_the_defaults_are_fine() -> None:
    EngineConfig().check()
    EngineConfig(model="shape:llama-3.1-8b", weights="random").check()
    EngineConfig(model="tiny-random", weights="random").check()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, ""),
        ({"model": "tiny-random"}, ""),
        ({"simulate_accept": 2.6}, "accept length set to 2.6"),
        ({"model": "shape:llama-3.1-8b", "weights": "random"}, "random weights, shape llama-3.1-8b"),
    ],
)
def test_what_is_simulated_is_said_in_words(options: dict[str, Any], words: str) -> None:
    assert EngineConfig(**options).simulated == words
