"""A real engine with a tiny random model behind the real server, for commands that are its clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.engine.server.server_under_test import ServerUnderTest

MAX_RUNNING = 8
ENGINE: dict[str, Any] = {
    "model": "tiny-random",
    "dtype": "float32",
    "threads": 1,
    "max_model_len": 256,
    "max_running": MAX_RUNNING,
    "max_queue": 64,
    "page_size": 64,
    "kv_tokens": 2048,
    "prefill_chunk": 64,
    "debug_checks": True,
}


def served(directory: Path, **engine: Any) -> Iterator[ServerUnderTest]:
    """Ready to serve; ended with the test that asked for it."""
    with ServerUnderTest(directory, engine={**ENGINE, **engine}) as server:
        server.wait_ready()
        yield server
