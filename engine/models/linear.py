"""Matrix products with fixed weights, in the form that is fastest for a dtype on this device.

Measured on two kinds of 2-core CPUs (docs/performance.md): one pass of the default model over a single token is bound
by reading the weights, so half the bytes is half the time wherever the arithmetic keeps up.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from engine.config import Dtype


@dataclass(frozen=True)
class Arithmetic:
    """How weights are kept and what the products run in."""

    name: str
    activations: torch.dtype
    """Inputs and outputs of the products, keys and values."""
    weights: str
    why: str

    @property
    def wide(self) -> torch.dtype:
        """What norms and rotations are computed in: never below float32 (first-token activations reach 26,000)."""
        return torch.float64 if self.activations == torch.float64 else torch.float32

    @property
    def half_precision(self) -> bool:
        """Whether near-ties of the top logits may fall differently with another batch shape."""
        return self.name in ("bfloat16", "float16")


def has_native_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 in hardware (AVX512-BF16 or AMX)."""
    return bool(torch.cpu._is_avx512_bf16_supported()) or has_matrix_bfloat16()


def has_matrix_bfloat16() -> bool:
    """Whether this CPU has a unit for bfloat16 matrices (AMX), beside which more tokens a product cost little."""
    return bool(torch.cpu._is_amx_tile_supported())


def has_float16_weights() -> bool:
    """Whether FBGEMM's float16 weights are there: x86 builds of torch with AVX2."""
    return "fbgemm" in torch.backends.quantized.supported_engines and torch.cpu._is_avx2_supported()


def choose_arithmetic(dtype: Dtype) -> Arithmetic:
    """Resolve ``--dtype`` for the CPU.

    Raises:
        ValueError: float16 where FBGEMM is missing.
    """
    if dtype == "auto":
        if has_native_bfloat16():
            return Arithmetic(
                "bfloat16",
                torch.bfloat16,
                "bfloat16 (oneDNN, prepacked)",
                "auto: this CPU multiplies bfloat16 in hardware",
            )
        if has_float16_weights():
            return Arithmetic(
                "float16", torch.float32, "float16 (FBGEMM)", "auto: no bfloat16 in this CPU; half the bytes of float32"
            )
        return Arithmetic("float32", torch.float32, "float32", "auto: neither bfloat16 nor FBGEMM here")
    if dtype == "bfloat16":
        if has_native_bfloat16():
            return Arithmetic("bfloat16", torch.bfloat16, "bfloat16 (oneDNN, prepacked)", "asked for")
        why = "asked for; slow, since this CPU has no bfloat16 in hardware"
        return Arithmetic("bfloat16", torch.bfloat16, "bfloat16", why)
    if dtype == "float16":
        if not has_float16_weights():
            raise ValueError("dtype float16 needs torch with FBGEMM on an AVX2 CPU; use float32 or bfloat16")
        return Arithmetic("float16", torch.float32, "float16 (FBGEMM)", "asked for")
    if dtype == "float32":
        packed = "float32 (oneDNN, prepacked)" if torch.backends.mkldnn.is_available() else "float32"
        return Arithmetic("float32", torch.float32, packed, "asked for")
    return Arithmetic("float64", torch.float64, "float64", "asked for")


def _prepacks(arithmetic: Arithmetic) -> bool:
    """Whether oneDNN keeps the weights in the blocks that its kernels read: 1.3 to 1.7 times as fast in bfloat16."""
    if not torch.backends.mkldnn.is_available():
        return False
    return arithmetic.name == "float32" or (arithmetic.name == "bfloat16" and has_native_bfloat16())


class Linear:
    """A product with fixed weights [out, in], in the form that is fastest for ``arithmetic``."""

    def __init__(self, weight: torch.Tensor, arithmetic: Arithmetic) -> None:
        self._add: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None
        self._product: Callable[[torch.Tensor], torch.Tensor]
        # Operators are resolved once: looking one up is a third of a call at one row.
        if arithmetic.name == "float16":
            with warnings.catch_warnings():  # torch says these kernels move elsewhere; its version is pinned
                warnings.simplefilter("ignore")
                packed = torch.ops.quantized.linear_prepack_fp16(weight.float().contiguous(), None)
            product = torch.ops.quantized.linear_dynamic_fp16.default
            self._product = lambda x: product(x, packed)
        elif _prepacks(arithmetic):
            blocked = torch.ops.mkldnn._reorder_linear_weight(weight.to(arithmetic.activations).contiguous(), 16)
            pointwise, binary = torch.ops.mkldnn._linear_pointwise.default, torch.ops.mkldnn._linear_pointwise.binary
            self._product = lambda x: pointwise(x, blocked, None, "none", [], "")
            self._add = lambda x, other: binary(x, other, blocked, None, "add")
        else:
            dense = weight.to(arithmetic.activations).contiguous()
            self._product = lambda x: F.linear(x, dense)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, in] -> [N, out]"""
        return self._product(x)

    def plus(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """other + product(x), in one kernel where there is one: [N, in], [N, out] -> [N, out]"""
        return self._add(x, other) if self._add is not None else other + self._product(x)
