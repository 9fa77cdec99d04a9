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
        ({"prefill_chunk": 0}, "--prefill-chunk: got 0, expected at least 1"),
        ({"max_model_len": 1}, "--max-model-len: got 1, expected at least 2"),
        ({"page_size": 0}, "--page-size: got 0, expected at least 1"),
        ({"threads": -1}, "--threads: got -1, expected at least 0"),
        ({"kv_tokens": 255}, "--kv-tokens: got 255, expected at least one page of --page-size 256"),
        ({"knobs": Knobs(topk=1)}, "topk=1 is a chain"),
        ({"device": "cuda"}, "device 'cuda' is not supported yet"),
    ],
)
def test_refused_by_name_before_anything_loads(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        assemble(EngineConfig(**options), target=tiny_target())


def test_the_defaults_are_fine() -> None:
    EngineConfig().check()
