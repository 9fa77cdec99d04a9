"""Where speculation stops paying, by arithmetic: the start value of the threshold when nobody chose one.

From the tables of docs/performance.md: default model and head, tree 4/2/16, two cores. A verify of 16 tokens is nearly
free where the CPU multiplies bfloat16 in hardware, for longest where it has a matrix unit; elsewhere it is bound by
arithmetic and costs over two plain steps.
"""

from __future__ import annotations

from engine.config import Device
from engine.models.linear import Arithmetic, has_matrix_bfloat16, has_native_bfloat16

GPU_TOKENS = 256
"""Tokens a verify step up to which speculation pays on an H200 (docs/performance.md): a little more than it computes
while it reads the weights. Of a model of 8B with a simulated accept length of 2.6 the tree 4/2/16 pays at 16 requests
and not at 64, a chain of 3 at 128 and not at 250."""

PAYS_UP_TO = {"bfloat16": 2, "float16": 1, "float32": 1, "float64": 1}
"""Arithmetic -> decode requests a step up to which speculation was faster, or even, when it was measured. bfloat16: by
vector instructions (AVX512-BF16)."""
MATRIX_UNIT_PAYS_UP_TO = 4
"""The same for bfloat16 with AMX."""


def measured_threshold(arithmetic: Arithmetic, device: Device, draft_tokens: int) -> int:
    """Decode requests a step to speculate up to, with trees of ``draft_tokens`` nodes."""
    if device == "cuda":
        return max(1, GPU_TOKENS // draft_tokens)
    if arithmetic.name == "bfloat16" and not has_native_bfloat16():
        return 0  # emulated: a wide product takes ten times a narrow one
    if arithmetic.name == "bfloat16" and has_matrix_bfloat16():
        return MATRIX_UNIT_PAYS_UP_TO
    return PAYS_UP_TO[arithmetic.name]
