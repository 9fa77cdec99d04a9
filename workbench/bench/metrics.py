"""A run's figures, named as vLLM's and SGLang's serving benchmarks name them. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import fmean

from probes.checks import quantile
from probes.gpu_time import GpuShare
from workbench.bench.answer import Answer

PERCENTILES = (50, 90, 99)


def itl_of(answer: Answer) -> list[float]:
    """Seconds before each token after the first chunk. The gap before a chunk is shared evenly by the chunk's tokens.

    With speculation a chunk holds several: the gap between chunks is then a step's time, and a token's is a part of it.
    """
    gaps: list[float] = []
    for (before, _), (at, tokens) in pairwise(answer.tokens_by_chunk):
        if tokens > 0:
            gaps += [(at - before) / tokens] * max(1, round(tokens))
    return gaps


def peak_rate(answers: Sequence[Answer], duration: float) -> float:
    """Most tokens a second in any window of about a second; never below the average, whatever the duration.

    The window is such that whole ones cover the run, 1 s to 2 s long, or all of a run that took less than a second:
    the fullest of those has at least the average.
    """
    if duration <= 0:
        return 0.0
    window = duration / max(1, math.floor(duration))
    arrivals = sorted((at, tokens) for answer in answers for at, tokens in answer.tokens_by_chunk)
    most, inside, first = 0.0, 0.0, 0
    for at, tokens in arrivals:
        inside += tokens
        while arrivals[first][0] < at - window:
            inside -= arrivals[first][1]
            first += 1
        most = max(most, inside)
    return most / window


@dataclass
class Run:
    """What one run left: the answers that came, and the time from its start to the last of them."""

    duration: float
    answers: list[Answer]
    most_in_flight: int = 0
    is_partial: bool = False
    """It was interrupted: what was in flight then is not in here."""
    steps: int | None = None
    """Engine steps of this run; None without a bus."""
    verified: int = 0
    correct_drafts: int = 0
    emitted: int = 0
    """Tokens by the engine's own count."""
    gpu: GpuShare = field(default_factory=GpuShare)
    """Of the run's steps; nothing in it where the engine has no GPU."""
    graph_hits: int = 0
    graph_misses: int = 0
    notes: list[str] = field(default_factory=list)
    client_cpu_s: float = 0.0
    """Processor time that this program spent meanwhile."""

    @property
    def completed(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.is_complete]

    @property
    def output_tokens(self) -> int:
        return sum(answer.output_tokens for answer in self.completed)

    @property
    def output_throughput(self) -> float:
        return self.output_tokens / self.duration if self.duration > 0 else 0.0

    @property
    def accept_length(self) -> float | None:
        """1 + correct drafts / verifies over this run's steps; None when nothing was verified, or without a bus."""
        return accept_length([self])


def accept_length(runs: Sequence[Run]) -> float | None:
    """A ratio of sums over all their steps, the bonus token included; None when nothing was verified."""
    verified = sum(run.verified for run in runs)
    return 1 + sum(run.correct_drafts for run in runs) / verified if verified else None


def gpu_idle(runs: Sequence[Run]) -> float | None:
    """Share of the GPU's time in which it waited for the next step, 0 to 1; None where nobody measured it."""
    return GpuShare(sum(run.gpu.idle for run in runs), sum(run.gpu.busy for run in runs)).value


def graph_misses(runs: Sequence[Run]) -> int | None:
    """Steps whose graph was not captured; None where no step looked for one."""
    missed = sum(run.graph_misses for run in runs)
    return missed if missed or any(run.graph_hits for run in runs) else None


def figures(runs: Sequence[Run]) -> dict[str, float | int | dict[str, int] | None]:
    """Of several runs of one setting as if they were one: latencies pooled, tokens over the sum of durations."""
    answers = [answer for run in runs for answer in run.completed]
    duration = sum(run.duration for run in runs)
    inputs = sum(answer.input_tokens for answer in answers)
    outputs = sum(answer.output_tokens for answer in answers)
    failures = Counter(answer.error.reason for run in runs for answer in run.answers if answer.error is not None)

    def rate(count: int) -> float:
        return count / duration if duration > 0 else 0.0

    found: dict[str, float | int | dict[str, int] | None] = {
        "duration": duration,
        "completed": len(answers),
        "failed": failures.total(),
        "errors": dict(failures.most_common()),
        "total_input_tokens": inputs,
        "total_output_tokens": outputs,
        "request_throughput": rate(len(answers)),
        "output_throughput": rate(outputs),
        "total_token_throughput": rate(inputs + outputs),
        "max_output_tokens_per_s": max((peak_rate(run.completed, run.duration) for run in runs), default=0.0),
        "max_concurrent_requests": max((run.most_in_flight for run in runs), default=0),
        "accept_length": accept_length(runs),
        "gpu_idle": gpu_idle(runs),
        "graph_misses": graph_misses(runs),
    }
    latencies = {
        "ttft": [answer.ttft for answer in answers if answer.ttft is not None],
        "tpot": [answer.tpot for answer in answers if answer.tpot is not None],
        "itl": [gap for answer in answers for gap in itl_of(answer)],
        "e2el": [answer.e2e for answer in answers],
    }
    for name, seconds in latencies.items():
        found[f"mean_{name}_ms"] = fmean(seconds) * 1e3 if seconds else None
        for p in PERCENTILES:
            value = quantile(seconds, p / 100)
            found[f"p{p}_{name}_ms"] = None if value is None else value * 1e3
    return found
