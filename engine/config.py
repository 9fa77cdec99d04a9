"""What an engine is started with. Everything here is fixed for the engine's life; knobs are what changes."""

from __future__ import annotations

from typing import Literal

import msgspec

from probes.knobs import Knobs, check_shape

Dtype = Literal["auto", "bfloat16", "float16", "float32", "float64"]


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Start options, one for one those of ``specwb serve``."""

    model: str = "smollm2-135m"
    draft_model: str | None = "auto"
    """``auto``: the head that belongs to the built-in model; None or ``none``: no draft, speculation impossible."""
    dtype: Dtype = "auto"
    """auto: bfloat16 where the CPU has it in hardware, else float16 weights with float32 arithmetic."""
    device: str = "cpu"
    threads: int = 0
    """Threads of the model's arithmetic; 0 takes all cores."""
    max_model_len: int = 2048
    """Longest prompt + output of a request, in tokens; at most the model's own context."""
    max_running: int = 64
    """Most requests that run together."""
    max_queue: int = 1024
    """Most requests that wait; more get a 429."""
    kv_tokens: int = 32768
    """Slots in the KV pool (target and draft alike)."""
    page_size: int = 256
    """Slots a page. On CPU large pages keep attention dense."""
    prefill_chunk: int = 256
    """Most prompt tokens in one step."""
    scheduler: Literal["sync"] = "sync"
    attention: Literal["auto", "torch"] = "auto"
    knobs: Knobs = Knobs()
    measured_threshold: bool = False
    """Nobody chose a threshold: start with the one measured for this arithmetic, in place of the knobs'."""
    publish_tokens: bool = False
    debug_checks: bool = False
    """Check the accounting invariants after every step."""

    def check(self) -> None:
        """Refuse numbers that no engine can run with.

        Raises:
            ValueError: naming the option, its value and what was expected.
        """
        least = {"threads": 0, "max_model_len": 2, "max_running": 1, "max_queue": 0, "page_size": 1, "prefill_chunk": 1}
        for name, low in least.items():
            value = getattr(self, name)
            if value < low:
                raise ValueError(f"--{name.replace('_', '-')}: got {value}, expected at least {low}")
        if self.kv_tokens < self.page_size:
            raise ValueError(
                f"--kv-tokens: got {self.kv_tokens}, expected at least one page of --page-size {self.page_size}"
            )
        check_shape(self.knobs.steps, self.knobs.topk, self.knobs.draft_tokens)
