"""What kernels ask of the GPU that they will run on."""

from __future__ import annotations

import torch

INTERPRETED_SMS = 4
"""Multiprocessors that the interpreter is told of: small enough for tests to meet both sides of the choices."""
_HOPPER = 9


def multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else INTERPRETED_SMS


def is_hopper(device: torch.device) -> bool:
    """Compute capability 9: warpgroup products and copies by tensor descriptor. The interpreter passes for one."""
    return device.type != "cuda" or torch.cuda.get_device_properties(device).major == _HOPPER
