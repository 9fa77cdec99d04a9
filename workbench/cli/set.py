"""``specwb set``: change knobs of a running engine, between two steps."""

from __future__ import annotations

import click

from probes.control import Applied, ControlClient, Refused
from probes.duration import duration_text
from probes.reverts import LONGEST_S
from workbench.cli.assignments import KNOB_HELP, parse, split_words
from workbench.cli.candidates import changes, name_or_changes
from workbench.cli.connect import engine_named, probe_errors
from workbench.cli.duration import Duration
from workbench.cli.seconds import Seconds
from workbench.console import fail, print_json, print_line
from workbench.exit_codes import ExitCode


@click.command("set", epilog=KNOB_HELP)
@click.argument("words", nargs=-1, required=True, metavar="[NAME] KNOB=VALUE...", shell_complete=name_or_changes)
@click.option(
    "--expect",
    multiple=True,
    metavar="KNOB=VALUE",
    shell_complete=changes,
    help="Change only if this is in force. Repeatable.",
)
@click.option(
    "--for",
    "after",
    type=Duration(LONGEST_S),
    metavar="TIME",
    help="The engine takes the change back after so long: 90s, 15m, 2h, 1h30m; up to a week.",
)
@click.option("--why", default="", help="Reason, kept with the change on the bus.")
@click.option("--who", default=None, help="Who changes it; default: user/pid.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object: old, new, step, knob_epoch, revert_at, back_to."
)
@click.option("--timeout", type=Seconds(), default=5.0, show_default=True, help="Seconds to wait for the engine.")
def command(
    words: tuple[str, ...],
    expect: tuple[str, ...],
    after: float | None,
    why: str,
    who: str | None,
    as_json: bool,
    timeout: float,
) -> None:
    """Change knobs together, as one change, before the engine's next step.

    All are checked together and applied together, or none is. Exit code 4: the engine refused and nothing changed.
    With --for the old values come back by themselves, but for knobs that somebody sets in the meantime.

    \b
    Example:
      specwb set threshold=2
      specwb set demo spec=off --expect spec=auto --why "load test"
      specwb set demo topk=1 steps=3 draft_tokens=4
      specwb set demo threshold=2 --for 15m
    """
    name, assignments = split_words(words)
    changes = parse(assignments)
    if not changes:
        raise click.UsageError("no knob to change; give at least one as knob=value, for example threshold=4")
    record = engine_named(name)
    with probe_errors(), ControlClient(record, timeout=timeout) as client:
        reply = client.set_knobs(changes, expect=parse(expect) or None, why=why, who=who, revert_after_s=after)
        timing_unknown = after is not None and isinstance(reply, Applied) and not knows_timing(client, reply)
    if isinstance(reply, Refused):
        if as_json:
            print_json({"engine": record.name, "refused": reply.code, "message": reply.message, "found": reply.found})
        fail(ExitCode.REFUSED, f"{record.name} refused ({reply.code}): {reply.message}")
    print_applied(record.name, reply, after, as_json)
    if timing_unknown:
        fail(ExitCode.FALSE, f"{record.name} is of an older version that knows no --for: the change stays until undone")


def knows_timing(client: ControlClient, reply: Applied) -> bool:
    """Whether the engine understood that the change is for a while: one that did not took it for good."""
    return reply.revert_at is not None or reply.old == reply.new or client.state().t > 0


def print_applied(engine: str, reply: Applied, after: float | None, as_json: bool) -> None:
    """Old → new of every knob, the first step with the new values, and what goes back."""
    if as_json:
        fields = {"old": reply.old, "new": reply.new, "step": reply.step, "knob_epoch": reply.knob_epoch}
        print_json({"engine": engine, **fields, "revert_at": reply.revert_at, "back_to": reply.back_to})
        return
    for knob, new in reply.new.items():
        old = reply.old.get(knob)
        print_line(f"{knob}: {old} → {new}" if old != new else f"{knob}: {new} (unchanged)")
    last = f"in force from step {reply.step} (epoch {reply.knob_epoch})"
    if reply.old == reply.new:
        last = f"nothing changed (epoch {reply.knob_epoch})"
        last += ", so nothing goes back" if after is not None and not reply.back_to else ""
    if after is not None and reply.back_to:
        back = ", ".join(f"{knob} {value}" for knob, value in reply.back_to.items())
        last += f"; back to {back} in {duration_text(after)}"
    print_line(last)
