"""What an engine is started with. Everything here is fixed for the engine's life; knobs are what changes."""

from __future__ import annotations

from typing import Literal

import msgspec

from probes.knobs import Knobs, check_shape
from probes.simulation import SHAPE, simulation_by

Dtype = Literal["auto", "bfloat16", "float16", "float32", "float64"]
Device = Literal["cpu", "cuda"]
SchedulerName = Literal["auto", "sync", "overlap"]
Attention = Literal["auto", "torch", "triton", "flashinfer"]
WorkerName = Literal["auto", "host", "device"]
Weights = Literal["auto", "random"]


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Start options, one for one those of ``specwb serve``. What ``auto`` and 0 become: `engine.start_choices`."""

    model: str = "smollm2-135m"
    draft_model: str | None = "auto"
    """``auto``: the head that belongs to the built-in model; None or ``none``: no draft, speculation impossible."""
    dtype: Dtype = "auto"
    """auto: bfloat16 on a GPU, and where the CPU has it in hardware, else float16 weights with float32 arithmetic."""
    device: Device = "cpu"
    weights: Weights = "auto"
    """``random``: no files, numbers of the model's sizes; for ``shape:`` models, which have nothing else."""
    threads: int = 0
    """Threads of the model's arithmetic on the CPU; 0 takes all cores."""
    max_model_len: int = 2048
    """Longest prompt + output of a request, in tokens; at most the model's own context."""
    max_running: int = 64
    """Most requests that run together."""
    max_queue: int = 1024
    """Most requests that wait; more get a 429."""
    kv_tokens: int = 0
    """Slots in the KV pool (target and draft alike); 0: 32768 on the CPU, what fits on a GPU."""
    page_size: int = 0
    """Slots a page; 0: 256 for the CPU's own worker, where large pages keep attention dense, 64 for kernels."""
    prefill_chunk: int = 0
    """Most prompt tokens in one step; 0: 256 on the CPU, 8192 on a GPU."""
    memory_fraction: float = 0.85
    """Share of the GPU's memory that the engine may fill, all told."""
    scheduler: SchedulerName = "auto"
    """auto: ``overlap`` on a GPU, ``sync`` on the CPU."""
    attention: Attention = "auto"
    worker: WorkerName = "auto"
    """``host``: the CPU's own; ``device``: state in device tensors, graphs; auto: by the device."""
    graphs: bool = True
    """Capture CUDA graphs; without them every step launches its kernels one by one."""
    graph_batch_sizes: tuple[int, ...] = ()
    """Batch sizes that graphs are captured for; empty: a ladder up to ``max_running``."""
    simulate_accept: float | None = None
    """Accept length (bonus included) that verifies are forced to, whatever the draft proposed: for benchmarks."""
    knobs: Knobs = Knobs()
    measured_threshold: bool = False
    """Nobody chose a threshold: start with the one measured for this arithmetic, in place of the knobs'."""
    publish_tokens: bool = False
    debug_checks: bool = False
    """Check the accounting invariants after every step."""

    @property
    def simulated(self) -> str:
        """What of the engine is not real, for people; empty when all of it is."""
        return simulation_by(self.model, self.weights, self.simulate_accept)

    def check(self) -> None:
        """Refuse numbers that no engine can run with.

        Raises:
            ValueError: naming the option, its value and what was expected.
        """
        least = {
            "threads": 0,
            "max_model_len": 2,
            "max_running": 1,
            "max_queue": 0,
            "kv_tokens": 0,
            "page_size": 0,
            "prefill_chunk": 0,
        }
        for name, low in least.items():
            value = getattr(self, name)
            if value < low:
                raise ValueError(f"{_option(name)}: got {value}, expected at least {low}")
        if 0 < self.kv_tokens < self.page_size:
            raise ValueError(
                f"--kv-tokens: got {self.kv_tokens}, expected at least one page of --page-size {self.page_size}"
            )
        if not 0.0 < self.memory_fraction <= 1.0:
            raise ValueError(f"--memory-fraction: got {self.memory_fraction:g}, expected more than 0 and at most 1")
        if any(size < 1 for size in self.graph_batch_sizes):
            raise ValueError(f"graph_batch_sizes: got {list(self.graph_batch_sizes)}, expected sizes of at least 1")
        check_shape(self.knobs.steps, self.knobs.topk, self.knobs.draft_tokens)
        self._check_simulation()

    def _check_simulation(self) -> None:
        """Simulated weights and acceptance: only where they mean something."""
        is_shape = self.model.startswith(SHAPE)
        if is_shape and self.weights != "random":
            raise ValueError(
                f"--model {self.model} is a shape without weights; start it with --weights random "
                "(its speed is a model's, its text is noise)"
            )
        if self.weights == "random" and not is_shape and self.model != "tiny-random":
            raise ValueError(
                f"--weights random: {self.model} has weights of its own; leave it out, or take a shape, such as "
                "--model shape:llama-3.1-8b"
            )
        most = self.knobs.steps + 1
        if self.simulate_accept is not None and not 1.0 <= self.simulate_accept <= most:
            raise ValueError(
                f"--simulate-accept: got {self.simulate_accept:g}, expected 1 to {most}: a verify gives one token "
                f"of the target's own and at most --steps {self.knobs.steps} drafts"
            )


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
