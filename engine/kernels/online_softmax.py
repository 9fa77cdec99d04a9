"""What the attention kernels share: one tile of keys taken into a running softmax.

The softmax is kept as in FlashAttention (Dao et al. 2022, algorithm 1): largest score so far, sum of exponents relative
to it, and values weighted the same way. Exponents are of two; the caller's scale carries log2(e).
"""

from __future__ import annotations

from typing import Any

from engine.kernels.dispatch import jit, tl

LOG2_E = 1.4426950408889634


@jit
def take_keys(
    q: tl.tensor, k: tl.tensor, v: tl.tensor, seen: tl.tensor, top: tl.tensor, acc: tl.tensor, scale: tl.tensor
) -> Any:
    """Takes q [M, D], k [D, N], v [N, D], seen bool [M | 1, N], top f32 [M], acc f32 [M, D]; gives weights f32 [M, N],
    top, decay f32 [M], acc. ``decay`` is what sums over earlier keys have to be multiplied by.

    Products of float32 are in float32, not tf32. A row that has seen nothing yet keeps top = -inf and weights of 0.
    """
    scores = tl.where(seen, tl.dot(q, k, input_precision="ieee") * scale, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, 1))
    finite = tl.where(new_top == float("-inf"), 0.0, new_top)
    decay = tl.math.exp2(top - finite)
    weights = tl.math.exp2(scores - finite[:, None])
    acc = tl.dot(weights.to(v.dtype), v, acc * decay[:, None], input_precision="ieee")
    return weights, new_top, decay, acc
