"""The live engine. ``from engine import LLM, SamplingParams, EngineConfig`` is all that a script needs.

The names are looked up when they are used: importing this package must not import torch, because the server process
and the packaging import parts of it that never touch a tensor.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.config import EngineConfig
    from engine.llm import LLM, Completion
    from engine.sampling_params import SamplingParams

__all__ = ["LLM", "Completion", "EngineConfig", "SamplingParams"]

# exported name -> the module that defines it
_HOMES = {
    "LLM": "engine.llm",
    "Completion": "engine.llm",
    "EngineConfig": "engine.config",
    "SamplingParams": "engine.sampling_params",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
