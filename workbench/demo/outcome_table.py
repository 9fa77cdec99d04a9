"""What the demo found, for people: a table, how to read it, and the verdict."""

from __future__ import annotations

import os

from rich import box
from rich.console import Console
from rich.table import Table

from probes.ci.near_ties import rule_text
from probes.simulation import WORD, simulated_text
from workbench.demo.outcome import Outcome
from workbench.demo.sameness import plain_text, sameness_cell, sameness_text

PLAIN_WIDTH = 160
"""Columns for readers that are not terminals: enough that nothing is cut."""


def outcome_lines(outcome: Outcome, width: int | None = None) -> list[str]:
    """The whole text, a line an entry. ``width``: of the terminal; None where there is none."""
    console = Console(width=width or PLAIN_WIDTH, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(_table(outcome))
    table = [line.rstrip() for line in captured.get().splitlines()]
    early = (
        [f"ended early: nothing was found out about spec={', spec='.join(outcome.missing)}"] if outcome.missing else []
    )
    simulated = [simulated_text(outcome.what_is_simulated)] if outcome.what_is_simulated else []
    return ["", *simulated, *table, "", *early, *_reading(outcome)] if outcome.modes else ["", *simulated, *early]


def _table(outcome: Outcome) -> Table:
    levels = sorted(set(outcome.levels))
    columns = [*(f"tok/s\nat {level}" for level in levels), "tok/s\nramp", "accept\nlength", "\nswitches"]
    columns += ["slots\nlost", "outputs\nidentical", "near-ties\nexcused"]
    # Gaps of one, and headings broken rather than cut: it fits 80 columns.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)
    table.add_column("\nspec")
    for name in columns:
        table.add_column(name, justify="right", overflow="fold")
    for mode in outcome.modes:
        load, compared = mode.load, mode.compared
        table.add_row(
            mode.name,
            *(_pace(mode.tok_s(level)) for level in levels),
            _pace(load.pace.tok_s),
            "n/a" if load.accept_length is None else f"{load.accept_length:.2f}",
            str(load.switches),
            str(mode.slots_lost),
            sameness_cell(compared),
            f"{compared.excused}/{compared.tokens}",
        )
    return table


def _pace(tok_s: float | None) -> str:
    return "n/a" if tok_s is None else f"{tok_s:.1f}" if tok_s < 100 else f"{tok_s:.0f}"


def _reading(outcome: Outcome) -> list[str]:
    """What stands below the table."""
    tallies = {mode.name: mode.compared for mode in outcome.modes}
    faults = [difference for mode in outcome.modes for difference in mode.compared.faults]
    plain = plain_text(tallies["off"], list(tallies.values()), outcome.dtype) if "off" in tallies else None
    lines = [
        "tok/s at N: in the typical (median) step of N decode requests; ramp: over all steps, prompts included",
        f"{sameness_text(list(tallies.values()))}, against a reference made with spec=off",
        *([plain] if plain else []),
        f"rule: {rule_text(outcome.dtype)}",
        *(f"difference: {fault.text}" for fault in faults),
    ]
    miscounted = [step for mode in outcome.modes for step in mode.miscounted]
    lost = sum(mode.slots_lost for mode in outcome.modes)
    agree = f"NO, in steps {miscounted}" if miscounted else "yes, in every step"
    lines.append(f"slots lost: {lost}; slots expected = reserved = written: {agree}")
    if outcome.events_lost:
        lines.append(f"events lost on the bus: {outcome.events_lost}; the sums above are too low by them")
    lines += [f"the engine reported an error: {error}" for error in outcome.errors]
    lines += [f"DISTURBED: {what}; the figures are not those of the settings" for what in outcome.disturbances]
    if outcome.is_noisy:
        lines.append(
            f"DISTURBED: steps that should take alike differ by {outcome.spread:.1f}x, so other programs were busy on "
            f"these {os.cpu_count()} CPUs; believe no figure above"
        )
    else:
        lines.append(f"one run on {os.cpu_count()} CPUs; steps that should take alike differ by {outcome.spread:.1f}x")
    if not outcome.missing:
        lines.append(f"verdict{f' ({WORD})' if outcome.what_is_simulated else ''}: {outcome.verdict.text}")
    return lines
