"""``specwb set``: change knobs of a running engine, between two steps."""

from __future__ import annotations

import click

from probes.control import Applied, ControlClient, Refused
from workbench.cli.assignments import KNOB_HELP, parse, split_words
from workbench.cli.connect import engine_named, probe_errors
from workbench.cli.seconds import Seconds
from workbench.console import fail, print_json, print_line
from workbench.exit_codes import ExitCode


@click.command("set", epilog=KNOB_HELP)
@click.argument("words", nargs=-1, required=True, metavar="[NAME] KNOB=VALUE...")
@click.option("--expect", multiple=True, metavar="KNOB=VALUE", help="Change only if this is in force. Repeatable.")
@click.option("--why", default="", help="Reason, kept with the change on the bus.")
@click.option("--who", default=None, help="Who changes it; default: user/pid.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object: old, new, step, knob_epoch.")
@click.option("--timeout", type=Seconds(), default=5.0, show_default=True, help="Seconds to wait for the engine.")
def command(
    words: tuple[str, ...], expect: tuple[str, ...], why: str, who: str | None, as_json: bool, timeout: float
) -> None:
    """Change knobs together, as one change, before the engine's next step.

    All are checked together and applied together, or none is. Exit code 4: the engine refused and nothing changed.

    \b
    Example:
      specwb set threshold=2
      specwb set demo spec=off --expect spec=auto --why "load test"
      specwb set demo topk=1 steps=3 draft_tokens=4
    """
    name, assignments = split_words(words)
    changes = parse(assignments)
    if not changes:
        raise click.UsageError("no knob to change; give at least one as knob=value, for example threshold=4")
    record = engine_named(name)
    with probe_errors(), ControlClient(record, timeout=timeout) as client:
        reply = client.set_knobs(changes, expect=parse(expect) or None, why=why, who=who)
    if isinstance(reply, Refused):
        if as_json:
            print_json({"engine": record.name, "refused": reply.code, "message": reply.message, "found": reply.found})
        fail(ExitCode.REFUSED, f"{record.name} refused ({reply.code}): {reply.message}")
    print_applied(record.name, reply, as_json)


def print_applied(engine: str, reply: Applied, as_json: bool) -> None:
    """Old → new of every knob, and the first step with the new values."""
    if as_json:
        fields = {"old": reply.old, "new": reply.new, "step": reply.step, "knob_epoch": reply.knob_epoch}
        print_json({"engine": engine, **fields})
        return
    for knob, new in reply.new.items():
        old = reply.old.get(knob)
        print_line(f"{knob}: {old} → {new}" if old != new else f"{knob}: {new} (was so already)")
    print_line(f"in force from step {reply.step} (epoch {reply.knob_epoch})")
