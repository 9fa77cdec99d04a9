"""``specwb ls``: the engines that run on this machine."""

from __future__ import annotations

import time
from typing import Any

import click

from probes.control import ControlClient, ControlError
from probes.discovery import EngineRecord, list_records
from probes.simulation import WORD, shape_in, simulation_of
from workbench.cli.connect import probe_errors
from workbench.console import print_json, print_table, say

HEADER = ("NAME", "STATE", "MODEL", "SPEC", "THRESHOLD", "NOW", "URL", "PID", "UPTIME")
ASK_S = 1.0
"""How long an engine may take to say its knobs; one that does not answer is listed all the same."""


def describe(record: EngineRecord, now: float) -> dict[str, Any]:
    """One engine as ``--json`` prints it; what it did not answer is null."""
    found: dict[str, Any] = {
        "name": record.name,
        "state": record.state,
        "model": record.model,
        "simulated": True if shape_in(record.model) else None,
        "knobs": None,
        "stage": None,
        "stage_s": None,
        "step": None,
        "http_url": record.http_url,
        "pid": record.pid,
        "host": record.host,
        "boot_id": record.boot_id,
        "uptime_s": round(max(0.0, now - record.started_at), 1),
        "endpoints": record.endpoints,
    }
    if record.state != "ready":
        return found
    with ControlClient(record, timeout=ASK_S) as client:
        try:
            state, hello = client.state(), client.hello()
        except ControlError as error:
            say(f"{record.name}: {error}")
            return found | {"state": "silent"}
    found["simulated"] = bool(simulation_of(hello))
    return found | {"knobs": state.knobs, "stage": state.stage, "stage_s": state.stage_s, "step": state.step}


def uptime_text(seconds: float) -> str:
    """``42s``, ``5m07s``, ``3h05m``, ``2d04h``."""
    s = int(seconds)
    if s < 60:
        return f"{s}s"
    if s < 3600:
        return f"{s // 60}m{s % 60:02}s"
    return f"{s // 3600}h{s % 3600 // 60:02}m" if s < 86400 else f"{s // 86400}d{s % 86400 // 3600:02}h"


def row(found: dict[str, Any]) -> list[str]:
    """One engine as a line of the table."""
    knobs = found["knobs"] or {}
    return [
        found["name"],
        found["state"],
        found["model"] + (f" {WORD}" if found["simulated"] else ""),
        str(knobs.get("spec", "-")),
        str(knobs.get("threshold", "-")),
        found["stage"] or "-",
        found["http_url"] or "-",
        str(found["pid"]),
        uptime_text(found["uptime_s"]),
    ]


@click.command("ls")
@click.option("--json", "as_json", is_flag=True, help="One object a line, one line an engine.")
def command(as_json: bool) -> None:
    """List the running engines: state, model, knobs, address, age.

    NOW is the stage an engine is in: idle when it waits for work.

    \b
    Example:
      specwb ls
      specwb ls --json | jq -r .http_url
    """
    with probe_errors():
        records = list_records()
    if not records:
        say("no engine is running; start one with `specwb serve`")
        return
    found = [describe(record, time.time()) for record in records]
    if as_json:
        for engine in found:
            print_json(engine)
    else:
        print_table(HEADER, [row(engine) for engine in found], right=frozenset({4, 7, 8}))
