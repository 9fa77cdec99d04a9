"""Scripted probe: the same greedy text with speculation off, on, and switched at random while it is generated.

``python -m probes.ci.lossless_switch [NAME]`` against a running engine that nobody else uses. Exit code 0 if all claims
hold, 1 if one does not. An engine with ``--dtype float32`` makes it strict: arithmetic of half precision has near-ties
in numbers, and those are excused.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from typing import Any

from probes.ci import program
from probes.ci.comparison import Tally, compare
from probes.ci.engine_under_probe import EngineUnderProbe
from probes.ci.findings import Findings, ProbeExit, Unsuited
from probes.ci.job_pool import JobPool
from probes.ci.near_ties import limit_for, rule_text
from probes.ci.openai_client import Answer
from probes.ci.texts import TEXTS
from probes.events import StepEvent
from probes.simulation import simulated_text, simulation_of

ROUNDS = 60
"""Batches at most, until speculation was switched often enough while they ran."""
LONGEST_PAUSE = 8
"""Steps between two switches, at most."""
SHAPES = (
    {"steps": 2, "topk": 4, "draft_tokens": 16},
    {"steps": 1, "topk": 2, "draft_tokens": 3},
    {"steps": 3, "topk": 1, "draft_tokens": 4},
)


class LosslessSwitch:
    """One run of the probe on one engine."""

    def __init__(self, engine: EngineUnderProbe, findings: Findings, tokens: int, seed: int) -> None:
        self._engine = engine
        self._findings = findings
        self._tokens = tokens
        self._random = random.Random(seed)
        self._limit = limit_for(str(engine.hello.model.get("dtype", "")))
        self._references: list[Answer] = []
        self._step = 0
        """Number of the newest step seen."""

    def run(self, switches: int) -> None:
        """Reference, on, switching; then what the engine's accounts say."""
        engine = self._engine
        dtype = str(engine.hello.model.get("dtype", "unknown"))
        if engine.hello.config.get("simulate_accept") is not None:
            raise Unsuited(
                f"{engine.name} simulates acceptance, so its text depends on the switches; start it without "
                f"--simulate-accept"
            )
        if what := simulated_text(simulation_of(engine.hello)):
            self._findings.say(what)
        self._findings.say(f"rule: {rule_text(dtype)}")
        if dtype not in ("float32", "float64"):
            self._findings.say(
                f"note: {dtype} rounds coarsely; start the engine with --dtype float32 for a strict probe"
            )
        engine.take(0)
        engine.forget()
        engine.set_knobs("lossless switch: reference", spec="off")
        self._references = self._batch(scored=True)
        self._findings.claim(
            "the reference ran with speculation off",
            engine.tally.plain_steps > 0 and not engine.tally.spec_steps,
            f"{engine.tally.plain_steps} plain steps, {engine.tally.spec_steps} speculating",
        )
        before = engine.tally.spec_steps
        engine.set_knobs("lossless switch: on", spec="on")
        self._claim_same("off and on", self._batch())
        speculated = engine.tally.spec_steps - before
        self._findings.claim("speculation did run while on", speculated > 0, f"{speculated} steps")

        outputs, seen, changes = [], engine.tally.switches, 0
        for _ in range(ROUNDS):
            answers, turned = self._switched_batch()
            outputs += answers
            changes += turned
            if engine.tally.switches - seen >= switches:
                break
        switched = engine.tally.switches - seen
        self._findings.claim(
            f"speculation was switched at least {switches} times while text was generated",
            switched >= switches,
            f"{switched} switches by {changes} knob changes over {len(outputs)} answers",
        )
        self._claim_same("off and switching", outputs)
        engine.settle(self._take)
        engine.claim_accounting(self._findings)

    def _batch(self, *, scored: bool = False) -> list[Answer]:
        """All texts at once; an answer each."""
        pool = self._start(scored)
        while pool.is_running:
            self._take()
        return self._answers(pool)

    def _switched_batch(self) -> tuple[list[Answer], int]:
        """All texts at once, while knobs are turned at random; how many times."""
        pool = self._start(scored=False)
        changes, due = 0, 0
        while pool.is_running:
            self._take(0.02)
            if self._step >= due:
                applied = self._engine.set_knobs("lossless switch: at random", **self._draw())
                changes += 1
                due = applied.step + self._random.randrange(LONGEST_PAUSE)
        return self._answers(pool), changes

    def _draw(self) -> dict[str, Any]:
        """Other knobs than before, more or less."""
        change: dict[str, Any] = {"spec": self._random.choice(("on", "off", "auto"))}
        if change["spec"] == "auto":
            change["threshold"] = self._random.randint(1, len(TEXTS))
        if self._random.random() < 0.5:
            change |= self._random.choice(SHAPES)
        return change

    def _start(self, scored: bool) -> JobPool[Answer]:
        chat = self._engine.client.chat
        return JobPool([partial(chat, text, self._tokens, scored=scored) for text in TEXTS], workers=len(TEXTS))

    def _answers(self, pool: JobPool[Answer]) -> list[Answer]:
        if pool.failure is not None:
            raise pool.failure
        self._engine.settle(self._take)
        return pool.results

    def _take(self, timeout: float = 0.1) -> None:
        for item in self._engine.take(timeout):
            if isinstance(item, StepEvent):
                self._step = item.step

    def _claim_same(self, what: str, answers: list[Answer]) -> None:
        """Compare answers, text after text in turn, with their references."""
        tally, texts_differ = Tally(), 0
        for index, answer in enumerate(answers):
            at = index % len(TEXTS)
            reference = self._references[at]
            found = compare(f"text {at + 1}", reference, answer.token_ids, self._limit, self._engine.client.complete)
            tally.outputs += 1
            tally.tokens += len(reference.token_ids)
            tally.differences += found
            texts_differ += not found and answer.text != reference.text
        self._findings.claim(
            f"{what}: the same tokens",
            tally.identical,
            f"{tally.outputs} answers, {tally.tokens} tokens, {len(tally.faults)} differences, "
            f"{tally.excused} near-ties excused",
        )
        for text, same in groupby(sorted(difference.text for difference in tally.differences)):
            self._findings.say(f"      {text}" + (f" (×{count})" if (count := len(list(same))) > 1 else ""))
        self._findings.claim(
            f"{what}: the same text where the tokens are", not texts_differ, f"{texts_differ} texts differ"
        )


def probe(options: argparse.Namespace) -> ProbeExit:
    """The whole probe."""
    findings = Findings()
    with EngineUnderProbe(options.name) as engine:
        findings.say(
            f"lossless switch on {engine.name}: {len(TEXTS)} texts at once, {options.tokens} tokens an answer, "
            f"seed {options.seed}"
        )
        LosslessSwitch(engine, findings, options.tokens, options.seed).run(options.switches)
    return findings.finish()


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--switches", type=int, default=20, help="at least so many (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of what is switched, and when (default %(default)s)")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    description = "Generate the same greedy texts with speculation off, on and switching, and compare them."
    return program.main("probes.ci.lossless_switch", description, 48, add_options, probe, argv)


if __name__ == "__main__":
    sys.exit(main())
