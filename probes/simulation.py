"""Whether an engine's figures are a real model's: what it says of itself, and what its start options say. In words.

Nothing that prints a figure of such an engine may leave the word out: a rate that random weights or a prescribed
acceptance gave says what the machine can do, and nothing about a model.
"""

from __future__ import annotations

from typing import Any

from probes.events import HelloEvent

WORD = "SIMULATED"
"""Stands wherever such figures are shown."""
UNSAID = "acceptance or weights are not real"
"""What is known where only a step's flag says so."""
SHAPE = "shape:"
"""A ``--model`` that begins so has the sizes of a model and no weights of one."""


def simulation_of(hello: HelloEvent) -> str:
    """What is not real in this engine, in words; empty when all of it is."""
    config = hello.config
    model = config.get("model") if shape_in(config.get("model")) else hello.model.get("name")
    said = simulation_by(model, config.get("weights"), config.get("simulate_accept"))
    return said or (UNSAID if hello.simulated else "")


def simulation_by(model: Any, weights: Any, simulate_accept: Any) -> str:
    """The same by the start options of these names, whatever another engine has under them."""
    parts = []
    if simulate_accept is not None:
        parts.append(f"accept length set to {simulate_accept}")
    shape = shape_in(model)
    if weights == "random" or shape:
        parts.append("random weights" + (f", shape {shape}" if shape else ""))
    return "; ".join(parts)


def shape_in(model: Any) -> str:
    """The shape's name in a model's; empty when it is no shape."""
    return model.removeprefix(SHAPE) if isinstance(model, str) and model.startswith(SHAPE) else ""


def simulated_text(what: str) -> str:
    """``SIMULATED: random weights, shape llama-3.1-8b``; empty when nothing is simulated."""
    return f"{WORD}: {what}" if what else ""
