"""Log probabilities of emitted tokens, for the requests of a step that asked: worked out on the device in the step.

The logits stand in buffers that the next step overwrites, and which tokens are emitted is known on the device first. So
all is made there for each token that may be emitted, and comes to the host with the step's other results.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from engine.accepted import Accepted
from engine.device.transfers import Downloads
from engine.ipc import TokenLogprobs


@dataclass(frozen=True)
class _Report:
    chosen: torch.Tensor  # float64 [n], on the host once the step has landed, as the others
    top_ids: torch.Tensor  # int64 [n, count]
    top: torch.Tensor  # float64 [n, count]


class StepLogprobs:
    """Of one step."""

    def __init__(self) -> None:
        self._reports: dict[str, _Report] = {}  # request id -> its tokens, in order

    def add(
        self, request_id: str, logits: torch.Tensor, tokens: torch.Tensor, count: int, downloads: Downloads
    ) -> None:
        """One request's: logits [n, vocab] of the nodes on its path, int64 [n] the tokens emitted there (any where
        fewer are), and how many of the likeliest tokens it wants. As `engine.sampler.report_logprobs`."""
        logprobs = torch.log_softmax(logits.double(), dim=-1)
        chosen = logprobs.gather(1, tokens.clamp_min(0)[:, None]).view(-1)
        top = logprobs.topk(count, dim=-1)
        fetch = downloads.fetch
        self._reports[request_id] = _Report(fetch(chosen), fetch(top.indices), fetch(top.values))

    def of(self, entry: Accepted, tokens: list[int]) -> list[TokenLogprobs]:
        """Those of a landed request's emitted tokens."""
        report, n = self._reports[entry.request.request_id], len(tokens)
        chosen, top_ids, top = report.chosen[:n].tolist(), report.top_ids[:n].tolist(), report.top[:n].tolist()
        return [
            TokenLogprobs(chosen=value, top_ids=ids, top=values)
            for value, ids, values in zip(chosen, top_ids, top, strict=True)
        ]
