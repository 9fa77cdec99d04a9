"""What an engine's hello says of precision and device. Pure; an engine that has not said hello yet is None."""

from __future__ import annotations

from probes.events import HelloEvent

HALF_PRECISION = frozenset({"bfloat16", "float16"})


def is_half_precision(hello: HelloEvent | None) -> bool:
    """By its own word, else by its dtype; False while unknown."""
    if hello is None:
        return False
    return bool(hello.model.get("half_precision", hello.model.get("dtype") in HALF_PRECISION))


def device_of(hello: HelloEvent | None) -> str:
    """``cpu``, ``cuda``, …; empty while unknown."""
    return str(hello.model.get("device", "")) if hello else ""


def device_name_of(hello: HelloEvent | None) -> str:
    """What the device calls itself, ``NVIDIA H200``; else as `device_of`."""
    said = hello.model.get("device_name") if hello else None
    return str(said) if said else device_of(hello)
