"""The numbers that describe a target model and an EAGLE-3 head, whatever file they came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class LlamaShape:
    """A Llama-architecture target."""

    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    max_position: int = 2048
    tie_embeddings: bool = True
    eos_token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Eagle3Shape:
    """An EAGLE-3 head: one decoder layer over [norm(embedding), norm(fc(aux))]."""

    hidden_size: int
    target_hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    draft_vocab_size: int
    aux_layers: tuple[int, ...]
    """Boundaries: the residual stream *entering* these target layers (see eagle3 notes in docs/architecture.md)."""
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10000.0
    rope_scaling: dict[str, Any] | None = None
    max_position: int = 2048
    norm_before_residual: bool = False


def default_aux_layers(num_layers: int) -> tuple[int, int, int]:
    """EAGLE-3's own choice (arXiv 2503.01840, reference code): low, middle and high boundaries."""
    return (2, num_layers // 2, num_layers - 3)
