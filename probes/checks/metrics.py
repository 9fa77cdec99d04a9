"""The names that an expectation may use: each defined once, with its unit, its words, and how it follows from a tally.

A value of None means *not measurable*, which is neither zero nor a pass; the metric then says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from probes.checks.tally import Tally

Value = int | float | str | None
"""A number; or, where there is none, why not (None: the metric's own words)."""


@dataclass(frozen=True)
class Metric:
    """One number about a stretch of an engine's life."""

    name: str
    unit: str
    meaning: str
    of: Callable[[Tally], Value]
    missing: str = ""
    """Why it has no value, when it has none."""


@dataclass(frozen=True)
class Reading:
    """What a metric came to."""

    metric: Metric
    value: float | None
    why: str = ""
    """Without a value: why not."""

    @property
    def text(self) -> str:
        return "n/a" if self.value is None else number_text(self.value)


def read(metric: Metric, tally: Tally) -> Reading:
    """A metric's value in a tally."""
    value = metric.of(tally)
    if isinstance(value, str) or value is None:
        return Reading(metric, None, value or metric.missing)
    return Reading(metric, value)


def read_all(tally: Tally) -> list[Reading]:
    """Every metric, in the table's order."""
    return [read(metric, tally) for metric in METRICS.values()]


def number_text(value: float) -> str:
    """A whole number as it is, another one with six digits."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"


def quantile(values: Sequence[float], share: float) -> float | None:
    """The value that ``share`` of them lie below, linear between the closest ranks as numpy's default; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _ratio(top: float, bottom: float) -> float | None:
    return top / bottom if bottom else None


def _with_steps(of: Callable[[Tally], Value]) -> Callable[[Tally], Value]:
    return lambda tally: of(tally) if tally.steps else None


_NO_STEP = "no step ran"
_NO_GRAPH = "no step looked for a captured graph (there are none on a CPU, and none for prompts alone)"


def _times(name: str, what: str, values: Callable[[Tally], Sequence[float]], missing: str) -> list[Metric]:
    """Percentiles of a duration."""

    def at(share: float) -> Callable[[Tally], Value]:
        return lambda tally: quantile(values(tally), share)

    return [
        Metric(f"{name}_ms_p{percent}", "ms", f"{what}: {words}", at(percent / 100), missing)
        for percent, words in ((50, "median"), (90, "90th percentile"), (99, "99th percentile"))
    ]


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(
            "accept_length",
            "tokens",
            "tokens a verify gave, the bonus token included: 1 + correct drafts / verifies",
            lambda t: 1 + t.correct / t.verified if t.verified else None,
            "nothing was verified",
        ),
        Metric(
            "accept_rate",
            "",
            "share of the proposed draft tokens that were correct, the bonus token left out",
            lambda t: _ratio(t.correct, t.proposed),
            "nothing was proposed",
        ),
        Metric(
            "output_throughput",
            "tok/s",
            "tokens handed to requests / seconds watched, idle ones included",
            lambda t: _ratio(t.emitted, t.span),
            "no time passed",
        ),
        Metric(
            "output_tokens", "tokens", "tokens handed to requests, after stops and length cuts", lambda t: t.emitted
        ),
        Metric("discarded", "tokens", "verified tokens that a stop or a length cut off", lambda t: t.discarded),
        Metric("verifies", "", "verifies: one for each request in each speculating step", lambda t: t.verified),
        Metric("steps", "", "engine steps", lambda t: t.steps),
        Metric("spec_steps", "", "steps that speculated", lambda t: t.spec_steps),
        Metric("plain_steps", "", "steps whose decode requests ran one token wide", lambda t: t.plain_steps),
        Metric("prefill_steps", "", "steps with prompts only", lambda t: t.modes["prefill"]),
        Metric(
            "spec_share",
            "",
            "share of the steps with decode requests that speculated",
            lambda t: _ratio(t.spec_steps, t.spec_steps + t.plain_steps),
            "no step had decode requests",
        ),
        Metric("switches", "", "changes between speculating and plain decode steps", lambda t: t.switches),
        Metric("knob_changes", "", "knob changes, by whoever", lambda t: t.knob_changes),
        Metric("gaps", "", "holes in the event numbers that could not be filled", lambda t: t.gaps),
        Metric("lost", "events", "events in those holes", lambda t: t.lost),
        Metric("late", "events", "events that were missing at first and could be fetched again", lambda t: t.late),
        Metric("dropped", "events", "events that the engine dropped before sending them", lambda t: t.dropped),
        Metric("malformed", "", "messages that could not be read", lambda t: t.malformed),
        Metric("restarts", "", "times that the engine process started anew", lambda t: t.restarts),
        Metric("alerts", "", "alerts of any level", lambda t: t.alerts.total()),
        Metric("errors", "", "alerts of level error", lambda t: t.errors),
        Metric(
            "plan_mismatches",
            "",
            "alerts that two stages of a step disagreed on a count (plan_mismatch)",
            lambda t: t.alerts["plan_mismatch"],
        ),
        Metric(
            "slot_mismatches",
            "",
            "steps that ran although their slots expected, reserved and written differ (see plan_mismatches)",
            _with_steps(lambda t: t.slot_mismatches),
            _NO_STEP,
        ),
        Metric("replans", "", "steps that had to be planned twice", _with_steps(lambda t: t.replans), _NO_STEP),
        Metric(
            "slots_leaked",
            "slots",
            "KV slots in use, over all pools, although the engine is idle at the end",
            lambda t: t.slots_leaked,
        ),
        Metric(
            "kv_used_max",
            "slots",
            "most KV slots in use, over all pools",
            _with_steps(lambda t: t.kv_used_max),
            _NO_STEP,
        ),
        Metric("queue_max", "", "most requests waiting for admission", _with_steps(lambda t: t.queue_max), _NO_STEP),
        Metric("requests_max", "", "most decode requests in a step", _with_steps(lambda t: t.requests_max), _NO_STEP),
        Metric("requests_arrived", "", "requests that arrived", lambda t: t.phases["arrived"]),
        Metric("requests_finished", "", "requests that came to their end", lambda t: t.phases["finished"]),
        Metric(
            "requests_aborted",
            "",
            "requests that ended early: the client left, or their step failed",
            lambda t: t.phases["aborted"],
        ),
        *_times("step", "a step's own stages", lambda t: t.step_ms, "no step said how long it took"),
        *_times("gpu", "a step's stages by the GPU's clock (CUDA events)", lambda t: t.gpu_ms, "no step ran on a GPU"),
        Metric(
            "gpu_idle",
            "",
            "share of the GPU's time, 0 to 1, in which it waited for the next step: idle / (idle + stages), by CUDA "
            "events; steps after an idle wait of the engine are left out",
            lambda t: t.gpu.value,
            "no step said how long a GPU waited for it",
        ),
        Metric(
            "graph_misses",
            "",
            "steps whose graph was not captured: they ran eager",
            lambda t: t.graph_misses if t.graph_hits + t.graph_misses else None,
            _NO_GRAPH,
        ),
        Metric(
            "graph_hit_rate",
            "",
            "share of the steps that looked for a captured graph, 0 to 1, that had one",
            lambda t: _ratio(t.graph_hits, t.graph_hits + t.graph_misses),
            _NO_GRAPH,
        ),
        *_times("ttft", "arrival to first token", lambda t: t.ttft_ms, "no request got its first token"),
        *_times(
            "tpot",
            "time a token after the first, by request",
            lambda t: t.tpot_ms,
            "no request of two tokens or more finished",
        ),
        *_times("e2e", "arrival to end, by request", lambda t: t.e2e_ms, "no request finished"),
        Metric(
            "draft_lag_max",
            "tokens",
            "most committed tokens whose draft K and V were not written yet",
            _with_steps(lambda t: t.draft_lag_max),
            _NO_STEP,
        ),
        Metric(
            "simulated",
            "",
            "1 when acceptance or weights of the engine are not real, by its own word or a step's; else 0",
            lambda t: int(bool(t.simulation)),
        ),
        Metric("simulated_steps", "", "steps whose acceptance or weights were simulated", lambda t: t.simulated),
    )
}
"""Name -> metric."""
