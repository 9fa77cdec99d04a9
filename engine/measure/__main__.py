"""``python -m engine.measure accept|step|pays|off``: what docs/performance.md is made of."""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from functools import partial

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # as the server starts its engine; before torch is imported

from engine.llm import LLM
from engine.measure.floor import make_floor
from engine.measure.workload import (
    accept_length,
    make_llm,
    read_prompts,
    requests_in_decode,
    timed_step,
    tokens_per_second,
)
from probes.knobs import KnobError, Knobs, check_shape
from probes.ratio import LEAST_PAIRS, interleaved

SHAPES = {"chain of 2": (2, 1, 3), "4/2/16": (2, 4, 16), "4/3/16": (3, 4, 16)}
"""Name (topk/steps/draft_tokens) -> steps, topk, draft_tokens."""


LEAST_OFF = 0.98
"""Of the rate without a head, with one loaded and off: its K and V follow, which is 1% of the default model's work."""


def measure_accept(options: argparse.Namespace) -> None:
    """Accept length of the default pair: default system line, greedy, natural end of text."""
    from engine.sampling_params import SamplingParams

    llm, sink = make_llm(options.model, options.dtype, options.threads, Knobs(spec="on"))
    prompts = [llm.chat_ids(prompt) for prompt in read_prompts(options.prompts)]
    for name, (steps, topk, draft_tokens) in SHAPES.items():
        llm.set_knobs(steps=steps, topk=topk, draft_tokens=draft_tokens)
        first = len(sink.events)
        completions = llm.generate(prompts, SamplingParams(max_tokens=options.tokens, temperature=0.0))
        verifies = sum(c.verify_steps for c in completions)
        emitted = sum(len(c.token_ids) for c in completions) - len(completions)  # less the prefills' tokens
        print(
            f"{name:12} accept length {accept_length(sink, first):.3f}, emitted / verifies {emitted / verifies:.3f} "
            f"({verifies} verifies, {llm.assembly.arithmetic.name})",
            flush=True,
        )


def measure_step(options: argparse.Namespace) -> None:
    """A plain step against the floor, head loaded."""
    # All prompts in one step, so that all requests have the same length from then on.
    chunk = max(options.clients) * options.context
    llm, _ = make_llm(options.model, options.dtype, options.threads, Knobs(spec="off"), prefill_chunk=chunk)
    print(f"plain step / floor, context {options.context}, {llm.assembly.arithmetic.weights}")
    for count in options.clients:
        with requests_in_decode(llm, count, options.context):
            lengths = [request.committed for request in llm.core.scheduler.running]
            for own, name in ((False, "torch's products"), (True, "our products    ")):
                floor = make_floor(llm.core.shape, llm.assembly.arithmetic, lengths, own)
                steps: list[float] = []

                def step(steps: list[float] = steps) -> float:
                    steps.append(timed_step(llm))
                    return steps[-1]

                for _ in range(2):
                    step()
                    floor()
                steps.clear()
                ratio = interleaved(step, floor, options.pairs)
                middle = statistics.median(steps) * 1e3
                verdict = ratio.at_most(1.25)
                print(f"{count:3} requests, {name}: {ratio}; step {middle:.1f} ms; <= 1.25: {verdict}", flush=True)


class _Side:
    """One way of serving ``count`` clients. Each call serves every prompt, since drafts fit some better than others."""

    def __init__(
        self, llm: LLM, knobs: dict[str, str | int], prompts: list[list[int]], count: int, tokens: int
    ) -> None:
        self._llm, self._knobs, self._prompts, self._tokens = llm, knobs, prompts, tokens
        self._count = count
        self.rates: list[float] = []

    def warm_up(self) -> None:
        self._llm.set_knobs(**self._knobs)
        tokens_per_second(self._llm, self._prompts[: self._count], 8)

    def rate(self) -> float:
        """Output tokens a second of one run."""
        self._llm.set_knobs(**self._knobs)
        calls = math.lcm(self._count, len(self._prompts)) // self._count
        prompts = [self._prompts[i % len(self._prompts)] for i in range(calls * self._count)]
        seconds = 0.0
        for first in range(0, len(prompts), self._count):
            served = prompts[first : first + self._count]
            seconds += len(served) / tokens_per_second(self._llm, served, self._tokens)
        self.rates.append(len(prompts) / seconds)
        return self.rates[-1]


def measure_pays(options: argparse.Namespace) -> None:
    """Throughput with speculation on over off, by clients."""
    llm, sink = make_llm(options.model, options.dtype, options.threads, Knobs(spec="off"), kv_tokens=32768)
    every = [llm.chat_ids(prompt) for prompt in read_prompts(options.prompts)]
    steps, topk, draft_tokens = options.shape
    shape = {"steps": steps, "topk": topk, "draft_tokens": draft_tokens}
    print(f"on / off, topk/steps/draft tokens {topk}/{steps}/{draft_tokens}, {llm.assembly.arithmetic.weights}")
    for count in options.clients:
        sides = {spec: _Side(llm, {"spec": spec, **shape}, every, count, options.tokens) for spec in ("on", "off")}
        for side in sides.values():
            side.warm_up()
        first = len(sink.events)
        ratio = interleaved(sides["on"].rate, sides["off"].rate, options.pairs)
        middle = {spec: statistics.median(side.rates) for spec, side in sides.items()}
        print(
            f"{count:3} clients: {ratio}; off {middle['off']:.1f} tok/s, on {middle['on']:.1f} tok/s, "
            f"accept length {accept_length(sink, first):.2f}",
            flush=True,
        )


def measure_off(options: argparse.Namespace) -> None:
    """Throughput with the head loaded and speculation off, over an engine started without a head, by clients."""
    engine = partial(make_llm, options.model, options.dtype, options.threads, Knobs(spec="off"), kv_tokens=32768)
    (with_draft, _), (alone, _) = engine(), engine(draft_model="none")
    if with_draft.core.worker.algorithm is None:
        raise ValueError(f"{options.model} has no head of its own: there is nothing to compare")
    every = [alone.chat_ids(prompt) for prompt in read_prompts(options.prompts)]
    print(f"off / without a head, {options.tokens} tokens a request, {alone.assembly.arithmetic.weights}")
    for count in options.clients:
        with_head, without = (_Side(llm, {"spec": "off"}, every, count, options.tokens) for llm in (with_draft, alone))
        with_head.warm_up()
        without.warm_up()
        ratio = interleaved(with_head.rate, without.rate, options.pairs)
        rates = [statistics.median(side.rates) for side in (with_head, without)]
        print(
            f"{count:3} clients: {ratio}; with {rates[0]:.1f} tok/s, without {rates[1]:.1f} tok/s; "
            f">= {LEAST_OFF}: {ratio.at_least(LEAST_OFF)}",
            flush=True,
        )


def _counts(text: str) -> list[int]:
    counts = [int(part) for part in text.split(",")]
    if min(counts) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected counts of at least 1, as 1,4,16")
    return counts


def _shape(text: str) -> tuple[int, int, int]:
    """topk/steps/draft_tokens -> steps, topk, draft_tokens."""
    try:
        topk, steps, draft_tokens = (int(part) for part in text.split("/"))
        check_shape(steps, topk, draft_tokens)
    except (ValueError, KnobError) as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}; expected topk/steps/draft_tokens, as 4/2/16") from error
    return steps, topk, draft_tokens


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m engine.measure", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for name, run, clients in (
        ("accept", measure_accept, ""),
        ("step", measure_step, "1,48"),
        ("pays", measure_pays, "1"),
        ("off", measure_off, "1,16,48"),
    ):
        verb = verbs.add_parser(name, description=run.__doc__, help=run.__doc__)
        verb.set_defaults(run=run)
        verb.add_argument("--model", default="smollm2-135m")
        verb.add_argument("--dtype", default="bfloat16" if name == "accept" else "auto")
        verb.add_argument("--threads", type=int, default=0)
        if name != "step":
            verb.add_argument("--prompts", required=True, help='file with one {"id": …, "prompt": …} a line')
            verb.add_argument("--tokens", type=int, default=200 if name == "accept" else 128)
        if clients:
            verb.add_argument("--clients", type=_counts, default=_counts(clients), help="as 1,4,16")
            verb.add_argument("--pairs", type=int, default=LEAST_PAIRS)
        if name == "step":
            verb.add_argument("--context", type=int, default=300)
        if name == "pays":
            verb.add_argument("--shape", type=_shape, default=_shape("4/2/16"), help="topk/steps/draft_tokens")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    options = make_parser().parse_args(argv)
    try:
        options.run(options)
    except ValueError as error:
        print(f"engine.measure: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
