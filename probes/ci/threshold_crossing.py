"""Scripted probe: load goes up through the threshold and down again, and every step does what the rule says.

``python -m probes.ci.threshold_crossing [NAME]`` against a running engine that nobody else uses. Exit code 0 if all
claims hold, 1 if one does not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import msgspec

from probes.ci import program
from probes.ci.client_ramp import ClientRamp, levels_through
from probes.ci.engine_under_probe import EngineUnderProbe
from probes.ci.findings import Findings, ProbeExit, Unsuited
from probes.ci.texts import TEXTS
from probes.ci.threshold_rule import ThresholdRule
from probes.events import RequestEvent, StepEvent
from probes.simulation import simulated_text, simulation_of

ROUNDS = 3
"""Ramps at most, until the load was seen on both sides of the threshold in both directions."""
SHOWN = 5
"""Violations that are spelled out."""


def probe(options: argparse.Namespace) -> ProbeExit:
    """The whole probe."""
    findings = Findings()
    with EngineUnderProbe(options.name) as engine:
        most = int(engine.hello.config.get("max_running", 64))
        threshold = engine.knobs.threshold if options.threshold is None else options.threshold
        if not 1 <= threshold < most:
            raise Unsuited(f"threshold {threshold} cannot be crossed by at most {most} requests; give --threshold")
        changes = {"spec": "auto", "policy": "threshold", "threshold": threshold, "draft_sync": "lazy"}
        applied = engine.set_knobs("threshold crossing", **changes)
        knobs = msgspec.structs.replace(engine.knobs, **changes)
        rule = ThresholdRule(knobs, applied.knob_epoch)
        widths: set[int] = set()
        levels = levels_through(threshold, most)
        if what := simulated_text(simulation_of(engine.hello)):
            findings.say(what)
        findings.say(
            f"threshold crossing on {engine.name}: threshold {threshold}, resumes at {knobs.resume_at}, "
            f"{knobs.draft_tokens} draft tokens; clients {' → '.join(map(str, levels))}, "
            f"{options.tokens} tokens an answer"
        )

        def take() -> None:
            for item in engine.take():
                if isinstance(item, StepEvent):
                    rule.step(item)
                    widths.update(int(width) for width in item.widths)
                elif isinstance(item, RequestEvent):
                    rule.request(item)

        def send(text: str) -> list[int]:
            return engine.client.chat(text, options.tokens).token_ids

        engine.take(0)
        engine.forget()
        answers: list[list[int]] = []
        for _ in range(ROUNDS):
            ramp = ClientRamp(send, TEXTS, levels)
            ramp.start()
            while ramp.is_running:
                take()
            if ramp.failure is not None:
                raise ramp.failure
            answers += [tokens for _, tokens in ramp.outputs]
            engine.settle(take)
            if rule.to_plain and rule.to_spec and widths >= {1, knobs.draft_tokens}:
                break

        lengths = {len(tokens) for tokens in answers}
        findings.claim(
            "every request was answered in full",
            lengths == {options.tokens} and engine.tally.phases["finished"] == len(answers),
            f"{len(answers)} answers of {options.tokens} tokens",
        )
        loads = sorted(rule.loads)
        findings.claim(
            "load was below and above the threshold",
            bool(loads) and loads[0] <= threshold < loads[-1],
            f"steps had {', '.join(map(str, loads)) or 'no'} decode requests",
        )
        findings.claim(
            "the decision changed in both directions",
            rule.to_plain > 0 and rule.to_spec > 0,
            f"{rule.to_plain} times to plain, {rule.to_spec} times back, {rule.held} steps held plain by hysteresis",
        )
        findings.claim(
            f"steps ran 1 wide and {knobs.draft_tokens} wide",
            widths == {1, knobs.draft_tokens},
            f"widths {', '.join(map(str, sorted(widths))) or 'none'}",
        )
        findings.claim(
            "mode, widths and reason follow the rule in every step",
            not rule.violations and rule.steps == engine.tally.steps,
            f"{rule.steps} steps, {len(rule.violations)} against it",
        )
        for violation in rule.violations[:SHOWN]:
            findings.say(f"      {violation}")
        engine.claim_accounting(findings)
    return findings.finish()


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threshold", type=int, help="for the time of the probe (default: the one in force)")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    description = "Ramp clients through the threshold, and hold every step against the rule."
    return program.main("probes.ci.threshold_crossing", description, 32, add_options, probe, argv)


if __name__ == "__main__":
    sys.exit(main())
