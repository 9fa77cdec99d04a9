"""Where speculation stops paying, by arithmetic: the start value of the threshold when nobody chose one.

From the tables of docs/performance.md: default model and head, tree 4/2/16, two cores. A verify of 16 tokens is nearly
free where the CPU multiplies bfloat16 in hardware; elsewhere it is bound by arithmetic and costs over two plain steps.
"""

from __future__ import annotations

from engine.config import Device
from engine.models.linear import Arithmetic, has_native_bfloat16

GPU_PAYS_UP_TO = 32
"""Of an H200, and cautious: a chain of 3 drafts with a simulated accept length of 2.6 still paid at 128 requests of a
model of 8B; wider trees stop earlier, and no head's own acceptance was measured there (docs/performance.md)."""

PAYS_UP_TO = {"bfloat16": 4, "float16": 1, "float32": 1, "float64": 1}
"""Arithmetic -> decode requests a step up to which speculation was faster, or even, when it was measured."""


def measured_threshold(arithmetic: Arithmetic, device: Device = "cpu") -> int:
    """Decode requests a step to speculate up to."""
    if device == "cuda":
        return GPU_PAYS_UP_TO
    if arithmetic.name == "bfloat16" and not has_native_bfloat16():
        return 0  # emulated: a wide product takes ten times a narrow one
    return PAYS_UP_TO[arithmetic.name]
