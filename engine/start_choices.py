"""What `auto` and 0 in the start options become on this machine, and why; what cannot be had is refused here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import torch

from engine.config import Dtype, EngineConfig, SchedulerName, WorkerName
from engine.models.linear import Arithmetic, choose_arithmetic, has_native_bfloat16

CPU_KV_TOKENS = 32768
PAGE_SIZES = {"host": 256, "device": 64}
PREFILL_CHUNKS = {"cpu": 256, "cuda": 8192}

_DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True)
class StartChoices:
    """The options with nothing left open, except ``kv_tokens`` 0 and ``attention`` auto where the model decides."""

    config: EngineConfig
    device: torch.device
    arithmetic: Arithmetic
    why: Mapping[str, str]
    """``worker`` and ``scheduler`` -> why it is that one, in words."""

    @property
    def on_device(self) -> bool:
        """Whether the device worker runs the steps."""
        return self.config.worker == "device"


def choose_start(config: EngineConfig) -> StartChoices:
    """Settle device, worker, scheduler, precision, and sizes.

    Raises:
        ValueError: what this machine does not have, or options that do not go together; it says what to do.
    """
    config.check()
    device = _device(config)
    worker, why_worker = _worker(config)
    scheduler, why_scheduler = _scheduler(config)
    arithmetic = choose_arithmetic(config.dtype) if worker == "host" else device_arithmetic(config.dtype, device)
    page_size = config.page_size or PAGE_SIZES[worker]
    settled = msgspec.structs.replace(
        config,
        worker=worker,
        scheduler=scheduler,
        page_size=page_size,
        prefill_chunk=config.prefill_chunk or PREFILL_CHUNKS[config.device],
        kv_tokens=config.kv_tokens or (0 if config.device == "cuda" else max(CPU_KV_TOKENS, page_size)),
    )
    if settled.kv_tokens and settled.kv_tokens < page_size:
        raise ValueError(f"--kv-tokens: got {settled.kv_tokens}, expected at least one page of {page_size}")
    return StartChoices(settled, device, arithmetic, {"worker": why_worker, "scheduler": why_scheduler})


def device_arithmetic(dtype: Dtype, device: torch.device) -> Arithmetic:
    """Resolve ``--dtype`` for the device worker: weights, activations, keys and values of one type.

    Raises:
        ValueError: float16.
    """
    if dtype == "float16":
        raise ValueError(
            "--dtype float16 is for CPUs without bfloat16, whose arithmetic stays float32; "
            "start with --dtype bfloat16 or float32"
        )
    if dtype != "auto":
        return Arithmetic(dtype, _DTYPES[dtype], dtype, "asked for")
    if device.type == "cuda":
        return Arithmetic("bfloat16", torch.bfloat16, "bfloat16", "auto: what a GPU multiplies fastest")
    if has_native_bfloat16():
        return Arithmetic("bfloat16", torch.bfloat16, "bfloat16", "auto: this CPU multiplies bfloat16 in hardware")
    return Arithmetic("float32", torch.float32, "float32", "auto: no bfloat16 in this CPU")


def _device(config: EngineConfig) -> torch.device:
    if config.device == "cpu":
        if config.attention == "flashinfer":
            raise ValueError("--attention flashinfer runs on a GPU; start with --device cuda, or leave it at auto")
        return torch.device("cpu")
    if not torch.cuda.is_available():
        found = "torch finds no GPU here, see nvidia-smi" if torch.version.cuda else "this torch is built for CPUs only"
        raise ValueError(f"--device cuda: {found}; start with --device cpu")
    return torch.device("cuda", torch.cuda.current_device())


def _worker(config: EngineConfig) -> tuple[WorkerName, str]:
    on_gpu = config.device == "cuda"
    if config.worker == "device" or (config.worker == "auto" and on_gpu):
        return "device", "auto: on a GPU" if config.worker == "auto" else "asked for"
    if on_gpu:
        raise ValueError("worker host runs on the CPU; leave it at auto with --device cuda")
    if config.attention == "triton":
        raise ValueError("--attention triton runs on a GPU; start with --device cuda, or leave it at auto")
    return "host", "auto: on the CPU" if config.worker == "auto" else "asked for"


def _scheduler(config: EngineConfig) -> tuple[SchedulerName, str]:
    name, asked = config.scheduler, "asked for"
    if name == "auto":
        name = "overlap" if config.device == "cuda" else "sync"
        asked = f"auto on {config.device}"
    does = (
        "the next step is planned and launched while one runs"
        if name == "overlap"
        else "the CPU waits for each step's result"
    )
    return name, f"{asked}: {does}"
