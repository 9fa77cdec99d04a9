"""``specwb audit``: the tool's own honesty, a client's tokens against bus, recording and screen."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from workbench.cli.candidates import engines
from workbench.cli.connect import engine_named, probe_errors
from workbench.console import columns_of, fail, print_json, print_line, say
from workbench.exit_codes import ExitCode


@click.command("audit")
@click.argument("name", required=False, shell_complete=engines)
@click.option("--requests", type=click.IntRange(8, 1000), default=40, show_default=True, help="Requests to send.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of their mix, and of the switches.")
@click.option("--recording", type=click.Path(path_type=Path), help="Keep the recording that is made meanwhile.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout instead of the text.")
def command(name: str | None, requests: int, seed: int, recording: Path | None, as_json: bool) -> int:
    """Be a client of an engine and compare what came with what the bus, a recording and the screen say about it.

    Sends streams and whole answers, stop strings, seeds, several choices, clients that leave and more requests than fit
    at once, and switches spec and threshold meanwhile. Every difference is named with both numbers and who says them.
    The engine must have no other clients; its knobs are as before afterwards.

    Exit code 1: there are differences.

    \b
    Example:
      specwb audit demo
      specwb audit --requests 100 --seed 7 --recording audit.mcap
    """
    record = engine_named(name)
    if record.http_url is None or record.state != "ready":
        fail(ExitCode.UNREACHABLE, f"{record.name} is not ready (state: {record.state}); see `specwb ls`")
    from workbench.audit.audit_text import audit_lines, report
    from workbench.audit.session import AuditSession

    with probe_errors():
        audited = asyncio.run(AuditSession(record, requests, seed, recording, say).run())
    if as_json:
        print_json(report(audited, record.name))
    else:
        for line in audit_lines(audited, columns_of(sys.stdout)):
            print_line(line)
    return ExitCode.OK if audited.is_clean else ExitCode.FALSE
