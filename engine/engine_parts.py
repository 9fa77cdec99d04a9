"""What the engine's core is put together from, whichever device runs the steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.config import EngineConfig
from engine.kv.ledger import KvLedger
from engine.memory_plan import MemoryPlan
from engine.worker import Worker

Progress = Callable[[str], None]
"""Says what is being done, for people who wait."""


@dataclass(frozen=True)
class AttentionChoice:
    """What computes attention, and why."""

    name: str
    runs: type | object
    """The class or object that does it, to say where it is defined."""
    why: str


@dataclass(frozen=True)
class EngineParts:
    """Models are loaded; pools and the rest are made with the worker, once there is a ledger."""

    config: EngineConfig
    """With ``kv_tokens`` settled."""
    make_worker: Callable[[KvLedger], Worker]
    attention: AttentionChoice
    prepare: Callable[[Worker], None] = lambda worker: None
    """Run once, before the first step: captures graphs."""
    memory: MemoryPlan | None = None
    """Of the GPU; None on the CPU."""
