"""``specwb completion``: the script that makes a shell complete our command lines."""

from __future__ import annotations

import click

from workbench.cli.shell_words import SHELLS, script_for
from workbench.console import print_line


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script with which a shell completes verbs, options, engine names, knobs and their values, recordings
    and models. Each line below installs it for good:

    \b
      echo 'eval "$(specwb completion bash)"' >> ~/.bashrc
      echo 'eval "$(specwb completion zsh)"' >> ~/.zshrc      (after compinit)
      echo 'specwb completion fish | source' >> ~/.config/fish/config.fish

    \b
    Example:
      specwb completion bash
    """
    print_line(script_for(shell, context.find_root().command).removesuffix("\n"))
