"""How far outputs are those of their references, in words. What differs is never called identical, excused or not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from probes.ci.comparison import Difference, Tally

SHOWN = 3
"""Near-ties that are shown line by line; differences that are not excused all are."""


def near_ties_text(count: int) -> str:
    """``1 near-tie``, ``12 near-ties``."""
    return f"{count} near-tie{'' if count == 1 else 's'}"


def sameness_cell(tally: Tally) -> str:
    """For a table: yes only where nothing differs."""
    if not tally.identical:
        return "NO"
    return f"but for {near_ties_text(tally.excused)}" if tally.excused else "yes"


def sameness_text(tallies: Sequence[Tally]) -> str:
    """Of all their outputs together: ``outputs identical but for 12 near-ties (in 26 outputs)``."""
    outputs = sum(tally.outputs for tally in tallies)
    faults = sum(len(tally.faults) for tally in tallies)
    excused = sum(tally.excused for tally in tallies)
    ties = f"near-ties excused: {excused}"
    if not all(tally.identical for tally in tallies):
        return f"outputs NOT IDENTICAL: {faults} differ, {ties} (in {outputs} outputs)"
    but = f" but for {near_ties_text(excused)}" if excused else ""
    return f"outputs identical{but} (in {outputs} outputs)"


def difference_lines(tally: Tally) -> list[str]:
    """What is not excused, all of it; of the near-ties the first, and how many more there are."""
    ties = _counted([difference for difference in tally.differences if difference.excused])
    lines = [_line(text, times) for text, times in [*_counted(tally.faults), *ties[:SHOWN]]]
    if more := sum(times for _, times in ties[SHOWN:]):
        lines.append(f"… and {more} more near-tie{'' if more == 1 else 's'} (in the report: --json)")
    return lines


def plain_text(off: Tally, others: Sequence[Tally], dtype: str) -> str | None:
    """Where two runs without speculation differ too, in one sentence; None where they do not.

    Args:
        off: spec=off against the reference, which was made with spec=off as well.
        others: of the other settings.
    """
    plain = _places(off)
    if not plain:
        return None
    places = plain.union(*map(_places, others))
    count = len(places)
    where = "that place" if count == 1 else f"{'each' if plain == places else len(plain)} of these {count} places"
    return (
        f"spec=off differs from its own spec=off reference at {where} (prompt and position): {dtype} differs there "
        "between two plain runs too, so that is batch size and not speculation"
    )


def _places(tally: Tally) -> set[tuple[str, int]]:
    """(prompt, position) of its near-ties."""
    return {(difference.prompt, difference.position) for difference in tally.differences if difference.excused}


def _counted(differences: Sequence[Difference]) -> list[tuple[str, int]]:
    """(text, how many such)"""
    return [(text, len(list(same))) for text, same in groupby(sorted(difference.text for difference in differences))]


def _line(text: str, times: int) -> str:
    return f"difference: {text}" + (f" (×{times})" if times > 1 else "")
