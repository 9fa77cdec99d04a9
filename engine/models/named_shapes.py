"""Llama shapes by name, for benchmarks that need a model's size and not its weights.

The numbers are facts of the published ``config.json`` files. Only true Llama layouts are here: Qwen's have
biases or norms on queries and keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.models.shapes import Eagle3Shape, LlamaShape, default_aux_layers


def _llama3_rope(factor: float) -> dict[str, Any]:
    return {
        "rope_type": "llama3",
        "factor": factor,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }


@dataclass(frozen=True, kw_only=True)
class NamedShape:
    """Sizes of a target, and of the EAGLE-3 head that goes with it."""

    name: str
    """As ``--model`` takes it, ``shape:`` included."""
    shape: LlamaShape
    draft_vocab_size: int
    seed: int = 0

    @property
    def title(self) -> str:
        """Its name wherever the model is shown, so that no one takes it for a real one."""
        return f"{self.name} (random weights)"

    @property
    def head_name(self) -> str:
        return f"{self.name}-eagle3 (random weights)"

    @property
    def head_shape(self) -> Eagle3Shape:
        """One layer as wide as the target's, over the paper's choice of layers."""
        wide = self.shape
        return Eagle3Shape(
            hidden_size=wide.hidden_size,
            target_hidden_size=wide.hidden_size,
            num_heads=wide.num_heads,
            num_kv_heads=wide.num_kv_heads,
            head_dim=wide.head_dim,
            intermediate_size=wide.intermediate_size,
            vocab_size=wide.vocab_size,
            draft_vocab_size=self.draft_vocab_size,
            aux_layers=default_aux_layers(wide.num_layers),
            rms_norm_eps=wide.rms_norm_eps,
            rope_theta=wide.rope_theta,
            rope_scaling=wide.rope_scaling,
            max_position=wide.max_position,
        )


def _llama3(**numbers: Any) -> LlamaShape:
    """What the Llama 3.1 and 3.2 models have in common."""
    return LlamaShape(
        vocab_size=128256,
        rms_norm_eps=1e-5,
        rope_theta=500000.0,
        max_position=131072,
        **numbers,
    )


_SHAPES = (
    NamedShape(
        name="shape:llama-3.1-8b",
        shape=_llama3(
            hidden_size=4096,
            num_layers=32,
            num_heads=32,
            num_kv_heads=8,
            head_dim=128,
            intermediate_size=14336,
            rope_scaling=_llama3_rope(8.0),
            tie_embeddings=False,
        ),
        draft_vocab_size=32000,
    ),
    NamedShape(
        name="shape:llama-3.2-3b",
        shape=_llama3(
            hidden_size=3072,
            num_layers=28,
            num_heads=24,
            num_kv_heads=8,
            head_dim=128,
            intermediate_size=8192,
            rope_scaling=_llama3_rope(32.0),
            tie_embeddings=True,
        ),
        draft_vocab_size=32000,
    ),
    NamedShape(
        name="shape:llama-3.2-1b",
        shape=_llama3(
            hidden_size=2048,
            num_layers=16,
            num_heads=32,
            num_kv_heads=8,
            head_dim=64,
            intermediate_size=8192,
            rope_scaling=_llama3_rope(32.0),
            tie_embeddings=True,
        ),
        draft_vocab_size=32000,
    ),
    NamedShape(
        name="shape:smollm2-135m",
        shape=LlamaShape(
            hidden_size=576,
            num_layers=30,
            num_heads=9,
            num_kv_heads=3,
            head_dim=64,
            intermediate_size=1536,
            vocab_size=49152,
            rms_norm_eps=1e-5,
            rope_theta=100000.0,
            max_position=8192,
            tie_embeddings=True,
        ),
        draft_vocab_size=16384,
    ),
)

SHAPES: dict[str, NamedShape] = {named.name: named for named in _SHAPES}
