"""Finds the row of a step by the step's number. Pure."""

from __future__ import annotations

import msgspec

from workbench.tui.timeline import Timeline


class _Name(msgspec.Struct):
    """What a step is called by."""

    step: int
    boot_id: str


_decode = msgspec.msgpack.Decoder(_Name).decode


def find_step(timeline: Timeline, step: int, boot_id: str = "") -> tuple[int, int] | None:
    """(row number, its step) of the step with that number, else of the one with the nearest number.

    The newest boot's comes first, unless a boot is named. None when no step is kept.
    """
    best: tuple[int, int] | None = None
    for number in range(timeline.end - 1, timeline.first - 1, -1):
        payload = timeline.payload(number)
        if payload is None:
            continue
        name = _decode(payload)
        if boot_id and name.boot_id != boot_id:
            continue
        if name.step == step:
            return number, step
        if best is None or abs(name.step - step) < abs(best[1] - step):
            best = (number, name.step)
    return best
