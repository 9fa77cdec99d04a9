"""What a step gave one request."""

from __future__ import annotations

from dataclasses import dataclass

from engine.request import Request
from engine.spec.verify import Walk


@dataclass(frozen=True)
class Accepted:
    """What one request of the plan got from the forward, before stops and max_tokens cut it."""

    request: Request
    width: int  # tokens verified; 0 for a prefill chunk
    walk: Walk
