"""``specwb which``: what really runs in an engine, where it is defined, and why it was chosen."""

from __future__ import annotations

import sys
from typing import Any

import click

from probes.control import ControlClient
from probes.events import HelloEvent
from probes.simulation import WORD, simulation_of
from workbench.cli.candidates import engines
from workbench.cli.connect import engine_named, probe_errors
from workbench.cli.seconds import Seconds
from workbench.console import columns_of, folded, print_json, print_line, print_table


def speculation_state(hello: HelloEvent) -> str:
    """Whether the engine can and may speculate, in words."""
    if hello.draft is None:
        return "no draft loaded: cannot speculate"
    knobs = hello.knobs
    if knobs.get("spec") == "off":
        return "draft loaded, speculation off (spec=off); `specwb set spec=auto` turns it on"
    if knobs.get("spec") == "auto" and knobs.get("threshold") == 0:
        return "draft loaded, speculation off (threshold=0 never speculates)"
    if knobs.get("spec") == "on":
        return "on for every decode step (spec=on)"
    return f"auto: on at up to {knobs.get('threshold')} decode requests a step"


def facts(fields: dict[str, Any] | None) -> str:
    """``name=smollm2 dtype=bfloat16 …``"""
    if not fields:
        return "none"
    return "  ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in fields.items()
    )


@click.command("which")
@click.argument("name", required=False, shell_complete=engines)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--timeout", type=Seconds(), default=5.0, show_default=True, help="Seconds to wait for the engine.")
def command(name: str | None, as_json: bool, timeout: float) -> None:
    """Say what really runs: worker class with file and line, scheduler, algorithm, attention, draft sync, and why.

    \b
    Example:
      specwb which demo
      specwb which --json | jq .which.attention
    """
    record = engine_named(name)
    with probe_errors(), ControlClient(record, timeout=timeout) as client:
        hello = client.hello()
    simulation = simulation_of(hello)
    if as_json:
        print_json(
            {
                "engine": hello.name,
                "version": hello.engine_version,
                "pid": hello.pid,
                "boot_id": hello.boot_id,
                "model": hello.model,
                "draft": hello.draft,
                "speculation": speculation_state(hello),
                "simulated": bool(simulation),
                "simulation": simulation or None,
                "knobs": hello.knobs,
                "which": hello.which,
            }
        )
        return
    facts_of_engine = [
        f"engine       {hello.name}  version {hello.engine_version}  pid {hello.pid}  boot {hello.boot_id}",
        f"model        {facts(hello.model)}",
        f"draft        {facts(hello.draft)}",
        f"speculation  {speculation_state(hello)}",
    ]
    if simulation:
        facts_of_engine.append(f"{WORD:<11}  {simulation}")
    for fact in facts_of_engine:
        for line in folded(fact, columns_of(sys.stdout), indent=13):
            print_line(line)
    print_line("")
    rows = [
        (role, str(entry.get("value", "?")), str(entry.get("defined", "-")), str(entry.get("why", "-")))
        if isinstance(entry, dict)
        else (role, str(entry), "-", "-")
        for role, entry in hello.which.items()
    ]
    print_table(("ROLE", "VALUE", "DEFINED", "WHY"), rows)
