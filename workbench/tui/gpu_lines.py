"""The GPU in words: how much of its time it waits between steps, and steps whose graph was missing. Pure.

Empty where the engine has none.
"""

from __future__ import annotations

from workbench.tui.gpu_meter import IDLE_S, GpuReading
from workbench.tui.hello_facts import device_name_of
from workbench.tui.line_panel import Line, Word, fit_items
from workbench.tui.session_state import SessionState

ROOMY = 110
"""From this many columns on it is said in full."""


def gpu_lines(state: SessionState, now: float, width: int) -> list[Line]:
    """One line for the overview: the idle share by CUDA events, graph misses, the device, and the scheduler."""
    if not state.has_gpu:
        return []
    reading = state.gpu.read(state.engine_now(now))
    roomy = width >= ROOMY
    basis = f" between steps (last {IDLE_S:.0f} s, by CUDA events)" if roomy else ""
    items: list[Line] = [
        [
            ("GPU ", "strong"),
            ("idle ", "dim"),
            _idle_word(reading),
            (basis, "dim"),
        ],
        _miss_words(reading, roomy),
        [(device_name_of(state.hello), "dim")],
        [(f"{state.scheduler} scheduler" if roomy else state.scheduler, "dim")],
    ]
    return [fit_items([item for item in items if any(text for text, _ in item)], width)]


def _idle_word(reading: GpuReading) -> Word:
    return ("n/a", "idle") if reading.idle is None else (f"{reading.idle:.1%}", "text")


def _miss_words(reading: GpuReading, roomy: bool) -> list[Word]:
    """``graph misses 3 since start, 0 in the last minute``; nothing where no step looked for a graph."""
    if not reading.looked and not reading.misses:
        return []
    of = "since start" if reading.is_since_start else f"of {reading.looked:,} steps seen"
    recent = f", {reading.recent} in the last {'minute' if roomy else 'min'}"
    return [
        ("graph misses ", "dim"),
        (f"{reading.misses:,}", "text"),
        (f" {of}", "dim"),
        (recent, "warn" if reading.recent else "dim"),
    ]


def status_items(state: SessionState, now: float) -> list[Line]:
    """For the status lines: the idle share, and misses while they are fresh."""
    if not state.has_gpu:
        return []
    reading = state.gpu.read(state.engine_now(now))
    items: list[Line] = [[("GPU idle ", "dim"), _idle_word(reading)]]
    if reading.recent:
        items.append([(f"graph miss {reading.recent}/min", "warn")])
    return items
