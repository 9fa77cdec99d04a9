"""What an audit found: as lines for people, and as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from probes.simulation import simulated_text
from probes.subscriber import Restart
from workbench.audit.evidence import of_type
from workbench.audit.session import Audited
from workbench.console import folded, table_lines

SHOWN = 50
"""Differences told to people; the JSON has all."""


def covered(audited: Audited) -> dict[str, Any]:
    """What really happened while it ran: what did not, was not audited."""
    evidence = audited.evidence
    steps, served = evidence.steps(), evidence.served
    ends = Counter(event.phase for events in evidence.requests().values() for event in events)
    return {
        "requests": len(served),
        "kinds": dict(Counter(request.planned.kind for request in served)),
        "streams": sum(request.planned.is_stream for request in served),
        "stopped": sum(
            sequence.finish_reason == "stop" for request in served for sequence in request.answer.sequences.values()
        ),
        "aborted": ends["aborted"],
        "most_waiting": max((step.queue for step in steps), default=0),
        "steps": dict(Counter(step.mode for step in steps)),
        "emitted_tokens": sum(step.emitted for step in steps),
        "discarded_tokens": sum(step.discarded for step in steps),
        "verified": sum(step.verified for step in steps),
        "switches": len(evidence.switches),
        "recorded_events": None if evidence.recording is None else len(evidence.recording),
    }


def report(audited: Audited, engine: str) -> dict[str, Any]:
    """Everything, for programs."""
    findings = audited.findings
    return {
        "engine": engine,
        "clean": audited.is_clean,
        "covered": covered(audited),
        "compared": findings.compared,
        "differences": [difference.as_json() for difference in findings.differences],
        "left": findings.left,
        "notes": findings.notes,
        "simulated": bool(audited.evidence.screen.simulation),
        "simulation": audited.evidence.screen.simulation or None,
    }


def audit_lines(audited: Audited, columns: int | None = None) -> list[str]:
    """For people. ``columns``: of the terminal; None where there is none."""
    findings, found = audited.findings, covered(audited)
    rows = [[pair, str(count)] for pair, count in findings.compared.items()]
    modes = ", ".join(f"{count} {mode}" for mode, count in found["steps"].items())
    told = [
        f"requests: {found['requests']}, {found['streams']} of them streams; {found['stopped']} ended by a stop, "
        f"{found['aborted']} aborted, at most {found['most_waiting']} waited at a time",
        f"steps: {modes}; {found['emitted_tokens']} tokens emitted, {found['discarded_tokens']} discarded, "
        f"{found['verified']} verifies; {found['switches']} switches of spec and threshold meanwhile",
    ]
    missing = [
        words
        for key, words in (
            ("most_waiting", "no request had to wait (more --requests, or a smaller --kv-tokens, make some)"),
            ("aborted", "no request was aborted"),
            ("verified", "nothing was verified"),
            ("switches", "no knob was turned"),
        )
        if not found[key]
    ]
    told += [f"not covered: {words}" for words in missing]
    if what := audited.evidence.screen.simulation:
        told.append(simulated_text(what))
    if findings.left:
        delivered, emitted = sum(left.delivered for left in findings.left), sum(left.emitted for left in findings.left)
        told.append(
            f"note: {len(findings.left)} clients left in mid answer with {delivered} tokens; {emitted - delivered} "
            f"more were emitted until the engine heard of it"
        )
    told += [f"note: {note}" for note in findings.notes]
    told += [
        f"the engine was restarted meanwhile (boot {restart.old_boot} -> {restart.new_boot}): what was in flight was "
        f"lost and steps count from 1 again, so most of what follows comes from that; run it again"
        for restart in of_type(audited.evidence.bus, Restart)
    ]
    for difference in findings.differences[:SHOWN]:
        told.append(f"DIFFERENCE  {difference.text}")
    if len(findings.differences) > SHOWN:
        told.append(f"… and {len(findings.differences) - SHOWN} more (--json has all)")
    count = len(findings.differences)
    numbers = sum(findings.compared.values())
    told.append(
        f"clean: {numbers} comparisons, no difference"
        if audited.is_clean
        else f"NOT CLEAN: {count} of {numbers} comparisons differ"
    )
    lines = [line for text in told for line in folded(text, columns)]
    return [*table_lines(["compared", "numbers"], rows, frozenset({1}), columns), "", *lines]
