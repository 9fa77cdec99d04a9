"""One interface to attention over the paged pool of the device worker, and the choice of what serves it.

Pools are one layer's ``k`` and ``v``, [slots, kv_heads, head_dim] each. The slot of position p of state row r is
``pages[r, p // page_size] * page_size + p % page_size``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch

from engine.config import Attention


@dataclass
class VerifyBatch:
    """Queries of requests that stand in the state: decode, tree verification, draft nodes. Same width for all."""

    rows: torch.Tensor
    """int64 [B], state rows."""
    width: int
    """Queries a request; q is [B * width, heads, head_dim], request-major."""
    pages: torch.Tensor
    """int32 [R, P], of the whole state."""
    lens: torch.Tensor
    """int32 [R]: prefix keys 0..lens[row] - 1, seen by every query."""
    page_size: int
    tail_loc: torch.Tensor
    """int64 [B, T], slots of the tail keys, which stand behind the prefix; T may be 0, at most 64."""
    tail_mask: torch.Tensor | None
    """int64 [B, width], bit t: the query sees tail key t. None: every query sees all T."""
    bound: int
    """At least the largest lens + T of the batch. The only length that may decide on shapes and launches: in a captured
    graph all the others change between replays."""


@dataclass
class ExtendBatch:
    """Prefill chunks, ragged and causal. K and V of all their tokens already stand in the pool."""

    rows: torch.Tensor
    """int64 [B], state rows."""
    starts: torch.Tensor
    """int32 [B], tokens before the chunk."""
    cu_q: torch.Tensor
    """int32 [B + 1], where each request's queries begin in q, and their end."""
    max_q: int
    """Longest chunk."""
    pages: torch.Tensor
    """int32 [R, P], of the whole state."""
    page_size: int
    host_pages: list[list[int]]
    """Page numbers of each request, for planners on the host."""
    host_lengths: list[int]
    """start + chunk of each request."""
    host_q: list[int]
    """Chunk length of each request."""


class AttentionBackend(Protocol):
    """Serves one shape of heads, in one dtype, on one device; calls come in order on one stream."""

    name: str
    graphs: bool
    """verify() may be captured in a CUDA graph, once it has run with the same shapes."""
    needs_lengths: bool
    """plan() has to be called before every verify, captured or not, with lengths that the host knows exactly: whoever
    steps must have landed all earlier steps. Such a backend serves only tails that are the next positions of the
    request's own pages, so not the nodes of a draft."""

    def refuses(self, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device) -> str | None:
        """Why it cannot serve this; None: it can."""
        ...

    def plan(
        self,
        lengths: Sequence[int],
        pages: Sequence[Sequence[int]],
        *,
        width: int,
        bucket: int,
        page_size: int,
        bound: int,
    ) -> None:
        """Before a verify of ``bucket`` requests and this width runs, is captured or is replayed, on the same stream.

        Does nothing without ``needs_lengths``.

        Args:
            lengths: what lens is for each request, without the ``width`` tokens that verify adds. At most ``bucket`` of
                them; the remaining rows only pad, and what they get is undefined.
            pages: page numbers of each request, enough for length + width.
            bound: on length + width of any request at any time; sizes the buffers that a graph holds on to.
        """
        return  # as the docstring says: inherited by those without

    def verify(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: VerifyBatch) -> torch.Tensor:
        """q [B * width, heads, head_dim] -> [B * width, heads * head_dim], scores scaled by head_dim ** -0.5."""
        ...

    def extend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, batch: ExtendBatch) -> torch.Tensor:
        """q [N, heads, head_dim] of all chunks, one behind the other -> [N, heads * head_dim]."""
        ...


def shape_words(heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> str:
    """For messages: "32/8 heads x 128 in bfloat16"."""
    return f"{heads}/{kv_heads} heads x {head_dim} in {str(dtype).removeprefix('torch.')}"


def choose_backend(
    name: Attention, heads: int, kv_heads: int, head_dim: int, dtype: torch.dtype, device: torch.device
) -> tuple[AttentionBackend, str]:
    """The backend to use, and why it is this one.

    ``auto`` never takes flashinfer: it plans on the host with the lengths of the step, so no step could be launched
    before the one before it has landed.

    Raises:
        ValueError: the one asked for cannot serve this shape; the message says what to choose instead.
    """
    shape = _Shape(heads, kv_heads, head_dim, dtype, device)
    words = f"{shape_words(heads, kv_heads, head_dim, dtype)} on {device}"
    if name != "auto":
        backend, reason = _make(name, shape)
        if reason is None:
            return backend, "as asked"
        others = [other for other in _AUTO if other != name and _make(other, shape)[1] is None]
        instead = f"start with --attention {others[0]} or auto" if others else "no other backend serves it either"
        raise ValueError(f"--attention {name} cannot serve {words}: {reason}; {instead}")
    if device.type != "cuda":
        return _make("torch", shape)[0], f"the device is {device.type}"
    reasons: list[str] = []
    for candidate in _AUTO:
        backend, reason = _make(candidate, shape)
        if reason is None:
            return backend, "; ".join(reasons) or "plans nothing on the host, so steps can overlap"
        reasons.append(f"not {candidate}: {reason}")
    raise ValueError(f"no attention backend serves {words}: {'; '.join(reasons)}")


_AUTO: tuple[Attention, ...] = ("triton", "torch")
"""In this order."""


class _Shape(NamedTuple):
    heads: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device


def _make(name: Attention, shape: _Shape) -> tuple[AttentionBackend, str | None]:
    """The backend of this name, and why it refuses the shape."""
    backend: AttentionBackend
    if name == "flashinfer":
        from engine.attention.flashinfer_backend import FlashInferBackend

        backend = FlashInferBackend(*shape)
    elif name == "triton":
        from engine.attention.triton_backend import TritonBackend

        backend = TritonBackend(shape.device)
    else:
        from engine.attention.torch_backend import TorchBackend

        backend = TorchBackend()
    return backend, backend.refuses(*shape)
