"""How much a check runs: the workload that the bars are for, or one that a CPU gets through in seconds."""

from __future__ import annotations

from typing import Literal

import msgspec
import torch

DRAFT_SHAPES = {
    "chain of 1": (1, 1, 2),
    "chain of 2": (2, 1, 3),
    "chain of 3": (3, 1, 4),
    "chain of 4": (4, 1, 5),
    "chain of 5": (5, 1, 6),
    "tree 4/2/16": (2, 4, 16),
}
"""Name (trees: topk/steps/draft tokens) -> steps, topk, draft tokens."""

CHAIN = "chain of 3"
ACCEPT = 2.6
"""Simulated accept length of every speculating row of the sweep, bonus included; at most steps + 1."""

THRESHOLD = 32


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """The workload: ``clients`` requests at once, ``prompt`` tokens in, ``output`` out, greedy, to the full length."""

    name: Literal["full", "quick"]
    model: str
    dtype: Literal["bfloat16", "float32"]
    clients: tuple[int, ...]
    shape_clients: tuple[int, ...]
    """Clients of the rows of trees and chains."""
    floor_widths: tuple[int, ...] = (1, 4)
    """Tokens a request whose step's floor is measured."""
    prompt: int
    output: int
    pairs: int
    """Of runs that alternate, where a ratio is claimed."""
    runs: int
    """Where only a rate is."""
    exact_prompts: int
    exact_tokens: int
    prefill_chunk: int
    kv_tokens: int


FULL = Sizes(
    name="full",
    model="shape:llama-3.1-8b",
    dtype="bfloat16",
    clients=(1, 16, 64, 128, 250),
    shape_clients=(1, 16, 64, 250),
    prompt=128,
    output=128,
    pairs=7,
    runs=3,
    exact_prompts=32,
    exact_tokens=124,
    prefill_chunk=8192,
    kv_tokens=98_304,  # 250 requests of 256 tokens and a tree, in pages of 64
)

QUICK = Sizes(
    name="quick",
    model="tiny-random",
    dtype="float32",
    clients=(1, 3),
    shape_clients=(3,),
    prompt=12,
    output=8,
    pairs=2,
    runs=1,
    exact_prompts=2,
    exact_tokens=12,
    prefill_chunk=64,
    kv_tokens=4096,
)


def torch_dtype(name: str) -> torch.dtype:
    """The type behind a config's name."""
    return {"bfloat16": torch.bfloat16, "float32": torch.float32}[name]
