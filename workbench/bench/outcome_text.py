"""A benchmark's outcome for people: a table, the ratios, and bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from probes.simulation import WORD, simulated_text
from workbench.bench.bar_plot import bar_lines
from workbench.bench.metrics import figures, gpu_idle, graph_misses
from workbench.bench.plan import Level
from workbench.bench.report import comparisons
from workbench.bench.session import Options, Outcome
from workbench.console import folded, table_lines

WIDTH = 100
"""Columns for readers that are not terminals."""


def outcome_lines(outcome: Outcome, options: Options, columns: int | None = None) -> list[str]:
    """The whole text. ``columns``: of the terminal; None where there is none."""
    has_gpu = any(gpu_idle([run]) is not None for _, run in outcome.runs)
    rows = _rows(outcome, options, has_gpu)
    if not rows:
        return []
    load = "clients" if options.levels[0].clients is not None else "rate"
    header = [load, "spec", "tok/s", "req/s", "ttft", "tpot", "itl", "e2e", "accept", "failed"]
    if not options.modes:
        header.remove("spec")
    header += ["gpu idle"] if has_gpu else []
    right = frozenset(number for number, name in enumerate(header) if name != "spec")
    lines = table_lines(header, rows, right, columns)
    told = [
        "tok/s: output tokens by usage; ttft, tpot, itl, e2e: milliseconds, median/99th percentile; itl is the time "
        "between tokens, where a chunk of several shares the time before it among them",
        "accept: tokens a verify step gives, bonus included, over exactly these runs' steps; n/a: nothing was "
        "verified, or there is no bus",
    ]
    if has_gpu:
        told.append("gpu idle: share of the GPU's time in which it waited for the next step, by CUDA events")
    told += _misses(outcome, options)
    told += _failures(outcome, options)
    notes = [f"note: {setting.level.text}: {note}" for setting, run in outcome.runs for note in run.notes]
    told += dict.fromkeys(notes)
    if outcome.stopped_by:
        told.append(f"stopped before its end: {outcome.stopped_by}; the figures are of what ran until then")
    told += [f"{level.text}: {found.text}" for level, found in comparisons(outcome, options)]
    lines += ["", *(line for text in told for line in folded(text, columns))]
    if not outcome.simulation:
        return [*lines, "", "output tok/s", *_bars(outcome, options, columns or WIDTH)]
    head = f"{simulated_text(outcome.simulation)}: no figure here says what a real model does"
    bars = _bars(outcome, options, columns or WIDTH)
    return [*folded(head, columns), "", *lines, "", f"output tok/s, {WORD}", *bars]


def _settings(outcome: Outcome, options: Options) -> list[tuple[Level, str | None]]:
    modes: Sequence[str | None] = options.modes or [None]
    return [(level, mode) for level in options.levels for mode in modes if outcome.of(level, mode)]


def _rows(outcome: Outcome, options: Options, has_gpu: bool) -> list[list[str]]:
    rows = []
    for level, mode in _settings(outcome, options):
        found = figures(outcome.of(level, mode))
        row = [level.short, *([mode] if mode is not None else [])]
        row += [_number(found["output_throughput"]), _number(found["request_throughput"], 2)]
        row += [_pair(found, name) for name in ("ttft", "tpot", "itl", "e2el")]
        row += [_number(found["accept_length"], 2), str(found["failed"])]
        idle = found["gpu_idle"]
        row += ["n/a" if idle is None else f"{idle:.1%}"] if has_gpu else []
        rows.append(row)
    return rows


def _pair(found: dict[str, Any], name: str) -> str:
    median, late = found[f"p50_{name}_ms"], found[f"p99_{name}_ms"]
    return "n/a" if median is None else f"{median:.0f}/{late:.0f}"


def _number(value: Any, digits: int = 1) -> str:
    return "n/a" if value is None else f"{value:.{digits}f}"


def _misses(outcome: Outcome, options: Options) -> list[str]:
    """Settings in which steps ran eager for want of a captured graph: a warm engine's figures are better."""
    return [
        f"graph misses, {_name(level, mode)}: {missed} steps ran eager, as their graph was not captured"
        for level, mode in _settings(outcome, options)
        if (missed := graph_misses(outcome.of(level, mode)))
    ]


def _name(level: Level, mode: str | None) -> str:
    return level.text + (f", spec={mode}" if mode is not None else "")


def _failures(outcome: Outcome, options: Options) -> list[str]:
    lines = []
    for level, mode in _settings(outcome, options):
        errors = figures(outcome.of(level, mode))["errors"]
        assert isinstance(errors, dict)
        if errors:
            reasons = ", ".join(f"{count} × {reason}" for reason, count in errors.items())
            lines.append(f"failed, {_name(level, mode)}: {reasons}")
    return lines


def _bars(outcome: Outcome, options: Options, columns: int) -> list[str]:
    groups: list[tuple[str, list[tuple[str, float]]]] = []
    for level in options.levels:
        bars = [
            (mode or "", float(found))
            for of, mode in _settings(outcome, options)
            if of == level and isinstance(found := figures(outcome.of(level, mode))["output_throughput"], float)
        ]
        if bars:
            groups.append((level.short, bars))
    return bar_lines(groups, columns)
