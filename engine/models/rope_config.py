"""Rotary embedding settings out of a config.json, in either of the two spellings that are in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.models.checkpoint_error import CheckpointError

_NEEDS = {
    "linear": ("factor",),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"),
}


def read_rope(source: str, config: Mapping[str, Any]) -> tuple[float, dict[str, Any] | None]:
    """theta and scaling (None for the plain kind) from ``rope_parameters``, or ``rope_theta`` and ``rope_scaling``.

    The scaling has ``rope_type`` (linear or llama3) and that type's numbers.

    Raises:
        CheckpointError: for another type, or a number that is missing.
    """
    settings = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    theta = float(settings.pop("rope_theta", None) or config.get("rope_theta") or 10000.0)
    older = settings.pop("type", None)
    kind = settings.pop("rope_type", None) or older or "default"
    if kind == "default":
        return theta, None
    if kind not in _NEEDS:
        raise CheckpointError(
            f"{source}: rope type {kind!r} is not supported, expected default, linear or llama3. Use another model."
        )
    missing = [name for name in _NEEDS[kind] if not isinstance(settings.get(name), int | float)]
    if missing:
        raise CheckpointError(
            f"{source}: rope type {kind} needs numbers for {', '.join(missing)} in config.json. Fetch the model again."
        )
    return theta, {"rope_type": kind} | {name: settings[name] for name in _NEEDS[kind]}
