"""``specwb get``: the knobs in force."""

from __future__ import annotations

import click
import msgspec

from probes.control import ControlClient, State
from probes.discovery import list_records
from probes.duration import duration_text
from probes.knobs import KNOBS
from probes.simulation import WORD, simulation_of
from workbench.cli.candidates import name_or_knob
from workbench.cli.connect import engine_named, probe_errors
from workbench.cli.seconds import Seconds
from workbench.console import fail, print_json, print_line, print_table, say
from workbench.exit_codes import ExitCode


def split_arguments(words: tuple[str, ...]) -> tuple[str | None, str | None]:
    """(NAME, knob): a single word is a knob if it is one's name, unless an engine of that name runs.

    Raises:
        click.UsageError: more than two words.
    """
    if len(words) > 2:
        raise click.UsageError(f"got {len(words)} words, expected at most a NAME and a knob")
    if len(words) == 2:
        return words[0], words[1]
    if not words:
        return None, None
    word = words[0].replace("-", "_")
    with probe_errors():
        is_engine = any(record.name == words[0] for record in list_records())
    return (None, word) if word in KNOBS and not is_engine else (words[0], None)


@click.command("get")
@click.argument("words", nargs=-1, metavar="[NAME] [KNOB]", shell_complete=name_or_knob)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: all knobs with the step, or the one knob.")
@click.option("--timeout", type=Seconds(), default=5.0, show_default=True, help="Seconds to wait for the engine.")
def command(words: tuple[str, ...], as_json: bool, timeout: float) -> None:
    """Print the knobs in force, or the value of one. A value set for a while shows what it goes back to, and when.

    \b
    Example:
      specwb get
      specwb get demo threshold
    """
    name, knob = split_arguments(words)
    record = engine_named(name)
    with probe_errors(), ControlClient(record, timeout=timeout) as client:
        state, simulation = client.state(), simulation_of(client.hello())
    if simulation and (knob is not None or as_json):  # stdout is data
        say(f"{record.name} is {WORD}: {simulation}")
    if knob is not None:
        knob = knob.replace("-", "_")
        if knob not in state.knobs:
            fail(ExitCode.USAGE, f"unknown knob {knob!r}; {record.name} has {', '.join(state.knobs)}")
        value = state.knobs[knob]
        print_json({knob: value}) if as_json else print_line(str(value))
    elif as_json:
        print_json(
            {
                "engine": record.name,
                "boot_id": state.boot_id,
                "step": state.step,
                "simulated": bool(simulation),
                "knob_epoch": state.knob_epoch,
                "knobs": state.knobs,
                "reverts": [
                    {**msgspec.structs.asdict(revert), "in_s": round(max(0.0, revert.t - state.t), 1)}
                    for revert in state.reverts
                ],
            }
        )
    else:
        if simulation:
            print_line(f"{WORD}: {simulation}")
        back = back_texts(state)
        print_table(
            ("KNOB", "VALUE", "MEANING"),
            [
                (knob, f"{value}{back.get(knob, '')}", KNOBS[knob].help if knob in KNOBS else "")
                for knob, value in state.knobs.items()
            ],
        )


def back_texts(state: State) -> dict[str, str]:
    """Knob -> `` (back to 4 in 13 min)``, for those that go back by themselves."""
    return {
        revert.knob: f" (back to {revert.back_to} in {duration_text(revert.t - state.t)})" for revert in state.reverts
    }
