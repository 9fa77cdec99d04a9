"""``specwb recordings``: look at recordings, check them, repair them, and take their data out."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from probes.simulation import WORD
from workbench.cell_text import clean
from workbench.cli.candidates import recordings
from workbench.cli.shipped import recording_path
from workbench.console import fail, print_json, print_line, print_table, say
from workbench.exit_codes import ExitCode
from workbench.recording.file_size import size_text
from workbench.time_text import clock_text

if TYPE_CHECKING:
    from probes.events import HelloEvent
    from workbench.recording.reader import Recording

MOST_FINDINGS = 100
"""Findings that verify prints; of the rest it gives the number."""


def opened(path: str) -> Recording:
    """The recording of that name.

    Raises:
        CommandError: it cannot be read; says why.
    """
    from workbench.recording.reader import Recording
    from workbench.recording.recording_error import RecordingError

    try:
        return Recording.open(recording_path(path))
    except RecordingError as error:
        fail(ExitCode.USAGE, str(error))


def description(recording: Recording) -> dict[str, Any]:
    """What ``info --json`` prints."""
    from probes.events import HelloEvent

    info = recording.info
    hellos = [item for _, item in recording.items(topics=("hello",)) if isinstance(item, HelloEvent)]
    hello = hellos[0] if hellos else None
    simulation = simulation_in(recording, hellos)
    marks = recording.marks()
    return {
        "file": str(info.path),
        "bytes": info.bytes,
        "engine": info.about.get("engine"),
        "model": info.about.get("model"),
        "host": info.about.get("host"),
        "specwb": info.about.get("specwb"),
        "schema_version": int(info.about.get("schema_version", "1")),
        "note": info.about.get("note", ""),
        "start": info.start,
        "end": info.end,
        "seconds": round(info.seconds, 6),
        "boots": info.boots,
        "counts": info.counts,
        "simulated": bool(simulation),
        "simulation": simulation or None,
        "knobs": hello.knobs if hello is not None else None,
        "switches": sum(mark.kind == "switch" for mark in marks),
        "knob_changes": info.counts.get("knob", 0),
        "alerts": info.counts.get("alert", 0),
        "bookmarks": sum(mark.kind == "bookmark" for mark in marks),
        "gaps": sum(mark.kind == "gap" for mark in marks),
        "restarts": sum(mark.kind == "restart" for mark in marks),
        "lost": recording.lost(),
        "finished": info.is_finished,
        "being_written": info.is_being_written,
        "missing": info.missing,
        "repaired": info.repaired,
    }


def simulation_in(recording: Recording, hellos: Sequence[HelloEvent]) -> str:
    """What is not real of the recorded engines, in words: by their own word, else by the first or the last step."""
    from probes.events import StepEvent
    from probes.simulation import UNSAID, simulation_of

    said = next((what for hello in hellos if (what := simulation_of(hello))), "")
    steps = [*islice(recording.items(topics=("step",)), 1), *recording.before(math.inf, "step", 1)]
    return said or (UNSAID if any(isinstance(step, StepEvent) and step.simulated for _, step in steps) else "")


def description_rows(found: dict[str, Any]) -> list[list[str]]:
    """The same for a person."""
    knobs = found["knobs"] or {}
    marks = [
        (found["knob_changes"], "knob change"),
        (found["alerts"], "alert"),
        (found["gaps"], "gap"),
        (found["restarts"], "restart"),
        (found["bookmarks"], "bookmark"),
    ]  # what the player's { and } stop at; at switches [ and ] do
    state = found["missing"] or "finished"
    if found["repaired"]:
        state = f"repaired; not saved: {found['repaired']}"
    rows = [
        ["file", f"{found['file']}  ({size_text(found['bytes'])})"],
        ["state", state],
        ["engine", f"{found['engine']}, model {found['model']}, host {found['host']}"],
        [WORD, found["simulation"] or ""],
        ["made by", f"specwb {found['specwb']}, event schema {found['schema_version']}"],
        ["time", f"{date_text(found['start'])} to {date_text(found['end'])}, {found['seconds']:.1f} s"],
        ["boots", ", ".join(found["boots"])],
        ["events", ", ".join(f"{topic} {count}" for topic, count in found["counts"].items())],
        ["knobs", " ".join(f"{name}={value}" for name, value in knobs.items())],
        ["switches", str(found["switches"])],
        ["marks", ", ".join(_count(*pair) for pair in marks if pair[0]) or "none"],
        ["lost", f"{_count(found['lost'], 'event')} in {_count(found['gaps'], 'gap')}"],
        ["note", found["note"]],
    ]
    return [[name, clean(text)] for name, text in rows if text]


def _count(number: int, what: str) -> str:
    """``1 gap``, ``2 gaps``, ``3 switches``."""
    return f"{number} {what}" + ("" if number == 1 else "es" if what.endswith("ch") else "s")


def date_text(t: float) -> str:
    """Local date, and time of day with milliseconds."""
    return f"{time.strftime('%Y-%m-%d', time.localtime(t))} {clock_text(t, ms=True)}"


@click.group("recordings")
def command() -> None:
    """Look at recordings, check and repair them, take their data out. All of it works on unfinished ones (.part) too.

    \b
    Example:
      specwb recordings info load.mcap
      specwb recordings export load.mcap --format csv -o load.csv
    """


@command.command("info")
@click.argument("file", shell_complete=recordings)
@click.option("--json", "as_json", is_flag=True, help="One object.")
def info(file: str, as_json: bool) -> None:
    """Say what a recording holds: engine, time, events, switches, marks, losses, and whether it was finished."""
    with opened(file) as recording:
        found = description(recording)
    if as_json:
        print_json(found)
    else:
        print_table(("WHAT", "VALUE"), description_rows(found))


@command.command("verify")
@click.argument("file", shell_complete=recordings)
def verify(file: str) -> int:
    """Check every byte: checksums, messages, and whether all numbers are there or recorded as missing.

    Each finding is a line on stdout; exit code 1 when there is one.
    """
    from workbench.recording.verify import verify as findings_of

    path, count = recording_path(file), 0
    if not os.path.lexists(path):
        fail(ExitCode.USAGE, f"there is no {path}")
    for finding in findings_of(path):
        count += 1
        if count <= MOST_FINDINGS:
            print_line(clean(finding))
    if count > MOST_FINDINGS:
        print_line(f"… and {count - MOST_FINDINGS} more")
    if count:
        say(f"{file} is not sound: {count} finding{'s' if count > 1 else ''}; `specwb recordings repair` may help")
        return ExitCode.FALSE
    say(f"{file} is sound")
    return ExitCode.OK


@command.command("repair")
@click.argument("file", shell_complete=recordings)
@click.option("-o", "--output", help="The new file.  [default: FILE's name with .repaired.mcap]")
def repair(file: str, output: str | None) -> int:
    """Make a whole recording of a cut or damaged one, as a new file. FILE stays as it is.

    The new file's path is printed on stdout.
    """
    from workbench.recording.recording_error import RecordingError
    from workbench.recording.repair import repair as repaired
    from workbench.recording.repair import repaired_path

    try:
        # Beside the file; of a recording that ships with specwb here, not among the program's own files.
        target = Path(output) if output else repaired_path(Path(file))
        result = repaired(recording_path(file), target)
    except RecordingError as error:
        fail(ExitCode.USAGE, str(error))
    say(f"saved {result.saved} messages; not saved: {result.lost_text}")
    print_line(str(result.path))
    return ExitCode.OK


@command.command("export")
@click.argument("file", shell_complete=recordings)
@click.option("--format", "kind", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
@click.option("--topic", "topics", multiple=True, help="Only this. Repeatable for jsonl; csv has one, else step.")
@click.option("-o", "--output", default="-", help="A new file, or - for stdout.  [default: -]")
def export(file: str, kind: str, topics: tuple[str, ...], output: str) -> int:
    """Print a recording's data: all items as JSON objects, or the events of one topic as rows.

    The columns are listed in docs/operations.md.
    """
    from workbench.recording.export import csv_lines, json_lines

    if kind == "csv" and len(topics) > 1:
        raise click.UsageError("csv has rows of one topic; give --topic once")
    with opened(file) as recording:
        try:
            lines = csv_lines(recording, *topics) if kind == "csv" else json_lines(recording, topics or None)
            write_lines(lines, output)
        except ValueError as error:
            raise click.UsageError(f"--topic: {error}") from None
        if recording.info.missing:
            say(recording.info.missing)
        if lost := recording.lost():
            say(f"{lost} events are not in it: they were lost before they reached the recorder")
    return ExitCode.OK


def write_lines(lines: Iterable[str], output: str) -> None:
    """To stdout, or into a new file.

    Raises:
        CommandError: the file exists, or cannot be written.
    """
    if output == "-":
        for line in lines:
            print_line(line)
        return
    is_made = False
    try:
        with open(output, "x", encoding="utf-8") as out:
            is_made = True
            out.writelines(f"{line}\n" for line in lines)
    except FileExistsError:
        fail(ExitCode.USAGE, f"{output} exists; choose another name")
    except OSError as error:
        if is_made:  # a part of the data is none that anybody should take for the whole
            Path(output).unlink(missing_ok=True)
        fail(ExitCode.FALSE, f"{output} cannot be written: {error.strerror}")
