"""``specwb check``: hold an engine, or a recording of one, to what is expected of it; for CI."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from probes.checks import (
    METRICS,
    Expectation,
    ExpectationError,
    Tally,
    Verdict,
    judge,
    junit_error,
    junit_xml,
    number_text,
    parse_expectation,
    read_all,
    watch,
)
from probes.events import HelloEvent
from probes.simulation import WORD, simulated_text
from probes.subscriber import Gap
from workbench.cli.candidates import engines_or_recordings
from workbench.cli.connect import engine_named, probe_errors
from workbench.cli.duration import Duration
from workbench.console import CommandError, fail, print_json, print_line, print_table, say
from workbench.exit_codes import ExitCode
from workbench.live_line import LiveLine
from workbench.whole_file import is_writable, write_whole

OVER_S = 10.0
"""How long a live engine is watched, unless told."""
RECORDINGS = (".mcap", ".part")


@dataclass
class Evidence:
    """What is judged: a stretch of an engine's life."""

    target: str
    is_live: bool
    began: float
    """Seconds since the epoch."""
    tally: Tally
    notes: list[str] = field(default_factory=list)
    """What must be known to believe the figures."""

    def add_notes(self) -> None:
        """Say what the tally itself gives away."""
        missing = self.tally.lost + self.tally.dropped + self.tally.malformed
        if missing:
            self.notes.append(f"{missing} events were lost, dropped or unreadable: the sums are too low by them")
        if self.tally.simulation:
            self.notes.append(simulated_text(self.tally.simulation))
        if self.is_live and not self.tally.steps:
            self.notes.append("no step ran: send it requests while it is watched")


def live_evidence(name: str | None, seconds: float) -> Evidence:
    """Watch an engine from now on.

    Raises:
        CommandError: there is none, or it does not answer or falls silent.
    """
    record = engine_named(name)
    line = LiveLine(sys.stderr)
    if not line.is_seen:
        say(f"watching {record.name} for {number_text(seconds)} s")

    def show(elapsed: float, tally: Tally) -> None:
        accept = f", accept length {1 + tally.correct / tally.verified:.2f}" if tally.verified else ""
        of = number_text(seconds)
        simulated = f", {WORD}" if tally.simulation else ""
        line.show(f"watching {record.name}: {elapsed:.0f} of {of} s, {tally.steps} steps{accept}{simulated}")

    began = time.time()
    try:
        with probe_errors():
            tally = watch(record, seconds, who=f"check {record.name}", progress=show)
    finally:
        line.clear()
    return Evidence(record.name, True, began, tally)


def recorded_evidence(path: Path, first: float | None, last: float | None) -> Evidence:
    """Add up a recording, or the first or the last seconds of it.

    Numbers that are missing without a gap that says so, such as those of a damaged chunk, are gaps too.

    Raises:
        CommandError: it cannot be read, or has no event at all.
    """
    from workbench.recording.reader import Recording
    from workbench.recording.recording_error import RecordingError
    from workbench.recording.sequence_check import Hole, SequenceCheck

    tally, sequence = Tally(), SequenceCheck()
    try:
        with Recording.open(path) as recording:
            info = recording.info
            for _, item in recording.items(topics=("hello",)):  # it may stand before the part that is asked for
                if isinstance(item, HelloEvent):
                    tally.meet(item)
            start = info.start if last is None else max(info.start, info.end - last)
            end = info.end if first is None else min(info.end, info.start + first)
            # No bound at the end of the file: what stands exactly there belongs to it.
            for _, item in recording.items(start, end if end < info.end else None):
                for hole in sequence.see(item):
                    if isinstance(hole, Hole):
                        tally.add(Gap(hole.topic, hole.first, hole.last, recovered=False))
                tally.add(item)
            if not info.counts:
                fail(ExitCode.FALSE, f"{path} has no event in it" + (f": {info.missing}" if info.missing else ""))
            notes = [f"the recording is incomplete: {info.missing}"] if info.missing else []
            asked = first or last or 0.0
            if asked > info.seconds:
                notes.append(f"the recording is shorter than the {number_text(asked)} s that were asked for")
    except RecordingError as error:
        fail(ExitCode.FALSE, str(error))
    except OSError as error:
        fail(ExitCode.FALSE, f"{path} cannot be read: {error.strerror}")
    tally.seconds = end - start
    return Evidence(str(path), False, start, tally, notes)


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """The table of expectations."""
    rows = []
    for verdict in verdicts:
        unit = f" {verdict.reading.metric.unit}" if verdict.reading.metric.unit else ""
        why = f": {verdict.reading.why}" if verdict.reading.why else unit
        rows.append([verdict.expectation.text, f"{verdict.reading.text}{why}", verdict.word])
    print_table(["expected", "measured", "verdict"], rows)


def print_readings(tally: Tally) -> None:
    """Every metric."""
    rows = [
        [reading.metric.name, reading.text, reading.metric.unit, reading.why or reading.metric.meaning]
        for reading in read_all(tally)
    ]
    print_table(["metric", "value", "unit", "what it is"], rows, right=frozenset({1}))


def as_json(evidence: Evidence, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "target": evidence.target,
        "source": "engine" if evidence.is_live else "recording",
        "began": evidence.began,
        "seconds": evidence.tally.span,
        "simulated": bool(evidence.tally.simulation),
        "ok": all(verdict.is_met for verdict in verdicts),
        "expectations": [
            {
                "text": verdict.expectation.text,
                "metric": verdict.expectation.metric.name,
                "op": verdict.expectation.op,
                "limit": verdict.expectation.limit,
                "unit": verdict.expectation.metric.unit,
                "measured": verdict.reading.value,
                "holds": verdict.holds,
                "why": verdict.reading.why,
            }
            for verdict in verdicts
        ],
        "metrics": {reading.metric.name: reading.value for reading in read_all(evidence.tally)},
        "notes": evidence.notes,
    }


def print_names(in_json: bool) -> None:
    """The table of metrics, without values."""
    if in_json:
        for metric in METRICS.values():
            print_json({"name": metric.name, "unit": metric.unit, "meaning": metric.meaning})
    else:
        print_table(["metric", "unit", "what it is"], [[m.name, m.unit, m.meaning] for m in METRICS.values()])


def parse_all(words: Sequence[str]) -> list[Expectation]:
    """The expectations of a command line, before anything is waited for."""
    try:
        return [parse_expectation(word) for word in words]
    except ExpectationError as error:
        raise click.UsageError(str(error)) from None


def require_folder(path: Path) -> None:
    """A report that cannot be written is refused before the wait, not after it."""
    if not is_writable(path):
        raise click.UsageError(f"--junit {path}: {path.parent} is no folder that can be written to")


def write(path: Path, text: str) -> None:
    """Whole or not at all: a CI server may look at any time."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        fail(ExitCode.FALSE, f"{path} cannot be written: {error.strerror}")


def is_recording(target: str) -> bool:
    """Whether a word names a file rather than an engine, whose names have no slash."""
    return target.endswith(RECORDINGS) or "/" in target


@click.command("check")
@click.argument("target", metavar="[NAME|FILE]", required=False, shell_complete=engines_or_recordings)
@click.option("--expect", "-e", "words", multiple=True, metavar="'NAME OP NUMBER'", help="Repeatable; all must hold.")
@click.option("--over", type=Duration(), help="How long to watch; of a recording, its first part.  [default: 10s]")
@click.option("--last", type=Duration(), help="Of a recording, its last part.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write the verdicts as JUnit XML too.")
@click.option(
    "--list", "listing", is_flag=True, help="Print the names that an expectation may use, and what they mean."
)
@click.option("--json", "in_json", is_flag=True, help="One JSON object on stdout.")
def command(
    target: str | None,
    words: tuple[str, ...],
    over: float | None,
    last: float | None,
    junit: Path | None,
    listing: bool,
    in_json: bool,
) -> int:
    """Hold an engine to what is expected of it: watch it from now on, or read a recording (.mcap, .part).

    NAME is a metric of --list, OP one of < <= == != >= >. What could not be measured, such as the accept length of a
    stretch in which nothing was verified, is not a pass. Without --expect every metric is printed.

    Exit codes: 0 all hold; 1 one does not, or could not be measured; 2 an expectation that cannot be checked;
    3 no such engine; 5 it does not answer, or fell silent.

    \b
    Example:
      specwb check demo --expect 'accept_length > 1.8' --expect 'gaps == 0' --over 60s --junit check.xml
      specwb check ramp.mcap --expect 'slot_mismatches == 0'
    """
    if listing:
        print_names(in_json)
        return ExitCode.OK
    expectations = parse_all(words)
    file = Path(target) if target is not None and is_recording(target) else None
    if file is None and last is not None:
        raise click.UsageError("--last is for recordings; a running engine is watched from now on, for --over")
    if over is not None and last is not None:
        raise click.UsageError("--over (the first part) and --last exclude each other")
    if file is not None and not os.path.isfile(file):
        part = Path(f"{file}.part")
        hint = (
            f"there is {part}, which was not finished"
            if os.path.isfile(part)
            else "an engine is named as `specwb ls` shows"
        )
        raise click.UsageError(f"there is no recording {file}; {hint}")
    if junit is not None:
        require_folder(junit)

    began = time.time()
    try:
        evidence = recorded_evidence(file, over, last) if file else live_evidence(target, over or OVER_S)
    except CommandError as error:
        if junit is not None:
            texts = [expectation.text for expectation in expectations]
            write(junit, junit_error(target or "engine", texts, error.message, time.time() - began, began))
        raise
    evidence.add_notes()
    verdicts = judge(expectations, evidence.tally)
    report(evidence, verdicts, in_json)
    if junit is not None:
        write(junit, junit_xml(evidence.target, verdicts, evidence.tally.span, evidence.began, evidence.notes))
    return ExitCode.OK if all(verdict.is_met for verdict in verdicts) else ExitCode.FALSE


def report(evidence: Evidence, verdicts: Sequence[Verdict], in_json: bool) -> None:
    """Data on stdout, the summary on stderr."""
    tally = evidence.tally
    simulated = simulated_text(tally.simulation)
    if in_json:
        print_json(as_json(evidence, verdicts))
    else:
        if simulated:  # with the figures, wherever they go
            print_line(simulated)
        print_verdicts(verdicts) if verdicts else print_readings(tally)
    for note in evidence.notes:
        if in_json or note != simulated:
            say(note)
    met = sum(verdict.is_met for verdict in verdicts)
    said = f"{met} of {len(verdicts)} expectations hold" if verdicts else "nothing was expected"
    say(f"{said}: {evidence.target}, {tally.span:.1f} s, {tally.steps} steps")
