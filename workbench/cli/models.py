"""``specwb models``: the built-in models; the engine's part of the installation lists and fetches them."""

from __future__ import annotations

import click

from workbench.cli.candidates import fetchable
from workbench.cli.engine_program import run_engine_program


@click.group("models", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the built-in models: name, kind, whether fetched, size, licence.

    \b
    Example:
      specwb models
      specwb models fetch
    """
    if context.invoked_subcommand is None:
        run_engine_program("engine.models", ["list", *(["--json"] if as_json else [])])


@command.command("fetch")
@click.argument("name", required=False, shell_complete=fetchable)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: name, path, fetched_now.")
def fetch(name: str | None, as_json: bool) -> None:
    """Download a built-in model and check its sha256; does nothing where it is there already.

    \b
    Example:
      specwb models fetch smollm2-135m
    """
    run_engine_program("engine.models", ["fetch", *([name] if name else []), *(["--json"] if as_json else [])])
