"""Which of its two implementations a kernel's public function takes: the Triton kernel, or the torch reference.

Decided a call, by `use_triton(tensor)`, so that both kinds of test live in one process:

- a CUDA tensor takes the kernel, compiled;
- a CPU tensor takes the reference, which is what the device worker runs in CI;
- a CPU tensor inside ``with interpret():`` takes the kernel, in Triton's interpreter (slow: tests only);
- float64 takes the reference everywhere: kernels compute in float32;
- without triton everything imports, and the references run.

Triton decides when a kernel is *decorated* whether it will be compiled or interpreted, by the environment variable
TRITON_INTERPRET, and its own library functions (tl.sum, ...) are decorated when triton is imported. The variable
therefore has to stand before the first import of triton: tests/conftest.py sets it on machines without CUDA. It alone
changes nothing here; `interpret()` is what turns the kernels on, and it raises where the variable came too late.

A kernel file is written so:

    from engine.kernels.dispatch import jit, tl, use_triton

    def f(x):
        return _f_triton(x) if use_triton(x) else f_reference(x)

    @jit
    def _f_kernel(x_ptr: tl.tensor, n: tl.tensor, block: tl.constexpr) -> None: ...

Triton's compiler reads the annotations of a kernel's arguments as code, which may name nothing of the module but `tl`:
``x_ptr: Any`` fails, and only where it is compiled. `tl.tensor` is the annotation for all that is not a constexpr.

`jit` takes triton.jit's options. Triton compiles a variant of a kernel for each combination of argument types, of
integers that are 1 or divisible by 16, and of pointers aligned to 16 bytes. An argument that differs in these from step
to step belongs into ``do_not_specialize`` (integers) or ``do_not_specialize_on_alignment`` (pointers to indices, which
may be views that begin anywhere): else a variant is compiled in the middle of serving.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # not an error: the references need none of it
    triton = None
    tl = None

__all__ = ["check_contiguous", "interpret", "interpretable", "jit", "next_power_of_2", "tl", "use_triton"]


class _Switch:
    """Whether `interpret()` holds; for the whole process."""

    interpreting = False


@overload
def jit(function: Callable[..., Any], /) -> Any: ...
@overload
def jit(
    *, do_not_specialize: Sequence[str] = (), do_not_specialize_on_alignment: Sequence[str] = ()
) -> Callable[[Callable[..., Any]], Any]: ...
def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`triton.jit` where there is triton, with its options. Launched as ``kernel[grid](...)``."""
    if triton is not None:
        return triton.jit(function, **options)
    return function if function is not None else lambda inner: inner


def interpretable() -> bool:
    """This process decorated its kernels for Triton's interpreter."""
    return triton is not None and not isinstance(_probe, triton.JITFunction)


@contextmanager
def interpret() -> Iterator[None]:
    """Within it CPU tensors take the kernels too. For tests; holds for the whole process, not for a thread.

    Raises:
        RuntimeError: the kernels of this process cannot be interpreted.
    """
    if not interpretable():
        raise RuntimeError("set TRITON_INTERPRET=1 before triton is imported (and install triton)")
    before, _Switch.interpreting = _Switch.interpreting, True
    try:
        yield
    finally:
        _Switch.interpreting = before


def use_triton(tensor: torch.Tensor) -> bool:
    """The kernel is to be launched on this tensor: it is on a GPU or `interpret()` holds, and it is not float64."""
    if triton is None or tensor.dtype == torch.float64:
        return False
    return tensor.is_cuda or _Switch.interpreting


def check_contiguous(**tensors: torch.Tensor) -> None:
    """For kernels that walk a tensor as one block of memory.

    Raises:
        ValueError: one of the tensors, named, is not contiguous.
    """
    for name, tensor in tensors.items():
        if not tensor.is_contiguous():
            raise ValueError(f"{name} must be contiguous, it has shape {list(tensor.shape)}, strides {tensor.stride()}")


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least n (n >= 1): what tl.arange takes."""
    return 1 << (n - 1).bit_length()


@jit
def _probe() -> None:
    """Never launched: its type says what triton made of this process's kernels."""
