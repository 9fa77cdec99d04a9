"""The gate and up products of a Llama MLP and what is made of them, silu(gate) * up, in one launch.

The output of the products is twice the result and, for many rows, larger than any cache: apart, it is written, read and
halved by a kernel of its own. Here the weights lie in blocks, gates and the ups beside them in turn, so that a tile of
one product holds both. Programs are persistent, one a multiprocessor, and the loop over tiles and that over the hidden
dimension are one: a tile's first operands are on their way while the tile before it is stored. Tiles below each other
come one after the other, in groups, so that the weights they share are still in the cache.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.kernels.card import is_hopper, multiprocessors
from engine.kernels.dispatch import jit, tl, use_triton
from engine.kernels.silu import silu_mul, silu_mul_reference

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # no triton, or an old one
    TensorDescriptor = None

TOGETHER = 64
"""Gates that lie together in the weights, and ups. A model whose gates are no multiple of it has them all first."""
FEWEST_ROWS = 832
"""From here on one launch is as fast or faster on an H200, from 0.98 to 1.15 times (docs/performance.md)."""
LEAST_FILLED = 0.965
"""So much of the multiprocessors' last tiles there have to be for that: with fewer they wait for each other's."""
ROWS, COLUMNS, STEP = 128, 128, 64
"""A tile's rows, its columns of the result, and what it takes of the hidden dimension at a time."""
GROUP = 8
"""Tiles below each other that come one after the other."""


def gates_together(inner: int) -> int:
    """Gates that lie together where a model has ``inner`` of them."""
    return TOGETHER if inner % TOGETHER == 0 else inner


def gated_product(x: torch.Tensor, gate_up: torch.Tensor, *, in_one: bool | None = None) -> torch.Tensor:
    """silu(x @ gate.T) * (x @ up.T), both products rounded to the dtype. [N, H], [2 I, H] -> [N, I].

    ``gate_up``: `gates_together` (I) rows of gates, as many of ups, and so on in turn. ``in_one``: in one launch, or as
    torch's product and `silu_mul`; None takes what is faster. For tests and measurements.

    Raises:
        ValueError: in one launch is asked for, which is not for this device, dtype or these sizes.
    """
    if in_one and not fits_one_launch(x, gate_up):
        raise ValueError(
            f"no launch of its own for {list(x.shape)} and {list(gate_up.shape)} of {x.dtype} on {x.device}: it takes "
            f"rows of 16-bit numbers, weights that lie together, whole tiles of {STEP} and {2 * COLUMNS}, and a GPU of "
            f"compute capability 9"
        )
    if in_one or (in_one is None and _pays(x, gate_up)):
        return _gated_product_triton(x.contiguous(), gate_up)
    return silu_mul(F.linear(x, gate_up), gates_together(gate_up.shape[0] // 2))


def gated_product_reference(x: torch.Tensor, gate_up: torch.Tensor) -> torch.Tensor:
    """`gated_product` in torch."""
    return silu_mul_reference(F.linear(x, gate_up), gates_together(gate_up.shape[0] // 2))


def fits_one_launch(x: torch.Tensor, gate_up: torch.Tensor) -> bool:
    """Whether one launch can compute it. float32 keeps torch's exact product; only rows may end within a tile, and a
    descriptor begins at 16 bytes."""
    return (
        TensorDescriptor is not None
        and use_triton(x)
        and x.dtype in (torch.bfloat16, torch.float16)
        and x.dtype == gate_up.dtype
        and x.shape[1] == gate_up.shape[1]
        and all(size > 0 for size in (*x.shape, *gate_up.shape))
        and x.shape[1] % STEP == 0
        and gate_up.shape[0] % (2 * COLUMNS) == 0
        and gate_up.is_contiguous()
        and gate_up.data_ptr() % 16 == 0
        and is_hopper(x.device)
    )


def _pays(x: torch.Tensor, gate_up: torch.Tensor) -> bool:
    """The rows first: most steps have few, and ask this once a layer."""
    n, inner = x.shape[0], gate_up.shape[0] // 2
    if n < FEWEST_ROWS or not fits_one_launch(x, gate_up):
        return False
    return _filled(_tiles(n, inner), multiprocessors(x.device)) >= LEAST_FILLED


def _tiles(n: int, inner: int) -> int:
    return -(-n // ROWS) * (inner // COLUMNS)


def _filled(tiles: int, programs: int) -> float:
    """Tiles there are over those that the programs could have computed until the last one ends."""
    return tiles / (-(-tiles // programs) * programs)


def _gated_product_triton(x: torch.Tensor, gate_up: torch.Tensor) -> torch.Tensor:
    if x.data_ptr() % 16:
        x = x.clone()
    (n, hidden), inner = x.shape, gate_up.shape[0] // 2
    out = torch.empty((n, inner), dtype=x.dtype, device=x.device)
    _gated_product_kernel[(min(_tiles(n, inner), multiprocessors(x.device)),)](
        TensorDescriptor.from_tensor(x, [ROWS, STEP]),
        TensorDescriptor.from_tensor(gate_up, [2 * COLUMNS, STEP]),
        TensorDescriptor.from_tensor(out, [ROWS, COLUMNS]),
        n,
        inner,
        hidden,
        rows=ROWS,
        columns=COLUMNS,
        step=STEP,
        group=GROUP,
        together=TOGETHER,
        num_warps=8,
        num_stages=3,
    )
    return out


@jit(do_not_specialize=["n"])
def _gated_product_kernel(
    x_desc: tl.tensor,
    gate_up_desc: tl.tensor,
    out_desc: tl.tensor,
    n: tl.tensor,
    inner: tl.tensor,
    hidden: tl.tensor,
    rows: tl.constexpr,
    columns: tl.constexpr,
    step: tl.constexpr,
    group: tl.constexpr,
    together: tl.constexpr,
) -> None:
    down = tl.cdiv(n, rows)
    across = inner // columns
    for tile in tl.range(tl.program_id(0), down * across, tl.num_programs(0), flatten=True):
        first = tile // (group * across) * group  # of the group's tiles below each other
        height = tl.minimum(down - first, group)
        row = (first + tile % (group * across) % height) * rows
        column = tile % (group * across) // height * columns
        acc = tl.zeros([rows, 2 * columns], tl.float32)
        for at in range(hidden // step):
            x = x_desc.load([row, at * step])
            weights = gate_up_desc.load([2 * column, at * step])
            acc = tl.dot(x, weights.T, acc)
        pairs = tl.permute(tl.reshape(acc, [rows, columns // together, 2, together]), [0, 1, 3, 2])
        gate, up = tl.split(pairs)
        gate = tl.reshape(gate, [rows, columns]).to(x_desc.dtype).to(tl.float32)
        up = tl.reshape(up, [rows, columns]).to(x_desc.dtype).to(tl.float32)
        # Where exp overflows the quotient is zero, as it should be.
        out_desc.store([row, column], (gate / (1.0 + tl.exp(-gate)) * up).to(x_desc.dtype))
