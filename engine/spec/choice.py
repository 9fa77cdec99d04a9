"""What the policy decided for one step."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SpecChoice:
    """Plain, or speculate with a tree shape; and why."""

    speculate: bool
    reason: str
    """Stable code, see docs/wire.md."""
    detail: str
    """The same in words, with the numbers that decided."""
    steps: int = 0
    topk: int = 0
    draft_tokens: int = 1
    """Verify width of a request that speculates; 1 when plain."""
