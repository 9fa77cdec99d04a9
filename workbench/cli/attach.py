"""``specwb attach``: watch and steer an engine on one screen."""

from __future__ import annotations

import click

from workbench.cli.candidates import engines
from workbench.cli.connect import engine_named
from workbench.cli.full_screen import require_terminal
from workbench.console import fail
from workbench.exit_codes import ExitCode


@click.command("attach")
@click.argument("name", required=False, shell_complete=engines)
def command(name: str | None) -> int:
    """Watch and steer an engine on one screen: every step, why it ran as it did, and speculation on a key.

    Press ? for the keys and what the words mean; q quits and the engine goes on. If the screen was killed with
    SIGKILL and the terminal is in disorder, type `reset`.

    \b
    Example:
      specwb attach demo
    """
    require_terminal("attach", f"use `specwb tail{f' {name}' if name else ''}` in pipes and scripts")
    record = engine_named(name)
    from workbench.tui.crash_report import describe, write_report
    from workbench.tui.screen import ScreenCrash, attach

    try:
        return attach(record)
    except ScreenCrash as crash:
        cause = crash.__cause__ or crash
        fail(ExitCode.INTERNAL, describe(cause, write_report(cause)))
