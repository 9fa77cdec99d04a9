"""When a first difference between two greedy outputs is the arithmetic's rounding, and not a fault.

Matrix products of another batch shape round differently. Where the top two tokens are closer than that, either may win,
with speculation or without. The limits are of the log probabilities' gap at that position of the reference.
"""

from __future__ import annotations

LIMITS = {"float64": 1e-9, "float32": 1e-3, "float16": 0.02, "bfloat16": 0.5}
"""Arithmetic, as the engine names it -> gap from which on it is no near-tie any more.

bfloat16 has steps of 0.125 at logits from 16 to 32, where the likeliest tokens of the default model lie. With another
batch shape, speculation off, gaps of up to three steps were seen to close, depending on the CPU; none of four was.
"""


def limit_for(dtype: str) -> float:
    """The limit for an arithmetic; one that is not in the table gets float32's."""
    return LIMITS.get(dtype, LIMITS["float32"])


def rule_text(dtype: str) -> str:
    """The rule in words, for the output."""
    return (
        f"a first difference is excused only where the reference's two likeliest tokens are less than "
        f"{limit_for(dtype):g} apart in log probability ({dtype}); the comparison then goes on from its text"
    )
