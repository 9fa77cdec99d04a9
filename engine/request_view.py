"""A request as the worker knows it: ahead of the host by the steps in flight."""

from __future__ import annotations

from dataclasses import dataclass

from engine.request import Request
from engine.sampling_params import SamplingParams


@dataclass
class RequestView:
    """Tokens and KV of one request after the newest launched step.

    The host's `Request` follows when that step lands. Tokens behind a stop are in ``ids`` all the same: only the host
    knows where a request ends.
    """

    request_id: str
    prompt_len: int
    ids: list[int]  # prompt + output; the newest token has no KV yet
    sampling: SamplingParams
    seed: int
    committed: int = 0  # tokens with KV in the target's pool

    @classmethod
    def of(cls, request: Request) -> RequestView:
        """The view of a request that no step has touched yet."""
        return cls(request.request_id, request.prompt_len, list(request.ids), request.sampling, request.seed)

    @property
    def output_len(self) -> int:
        return len(self.ids) - self.prompt_len
