"""What the figures belong to: the card, its driver, and the versions of what runs on it."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version

import torch


def describe(device: str) -> dict[str, str]:
    """card, driver, cuda, torch, triton, flashinfer, python, system; ``none`` for what is not installed."""
    card, driver = platform.processor() or platform.machine(), "none"
    if device == "cuda":
        properties = torch.cuda.get_device_properties(0)
        card = f"{properties.name}, {properties.total_memory / 2**30:.0f} GiB, {properties.multi_processor_count} SMs"
        driver = _driver()
    return {
        "device": device,
        "card": card,
        "driver": driver,
        "cuda": torch.version.cuda or "none",
        "torch": str(torch.__version__),
        "triton": _version("triton"),
        "flashinfer": _version("flashinfer-python"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip() or "unknown"
