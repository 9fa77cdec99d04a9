"""Whether two greedy outputs of one prompt are the same, token by token, near-ties apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from probes.ci.openai_client import Answer

Continue = Callable[[Sequence[int], int], list[int]]
"""(prompt ids, tokens wanted) -> the engine's tokens, under the settings that are compared."""


@dataclass(frozen=True)
class Difference:
    """The first token of an output (or of a continuation of it) that is not the reference's."""

    prompt: str
    position: int
    """Of the output's tokens, from 0."""
    expected: int | None
    """Token of the reference; None: the output is longer than it."""
    found: int | None
    """Token of the output; None: it is shorter than the reference."""
    gap: float | None
    """Between the reference's two likeliest tokens there, in log probability."""
    excused: bool

    @property
    def text(self) -> str:
        """For people."""
        gap = "" if self.gap is None else f", the reference's top two are {self.gap:.4g} apart"
        verdict = "near-tie, excused" if self.excused else "NOT EXCUSED"
        expected = "the end" if self.expected is None else f"token {self.expected}"
        found = "the end" if self.found is None else f"token {self.found}"
        return f"prompt {self.prompt!r}, position {self.position}: {found} for {expected}{gap}: {verdict}"


@dataclass
class Tally:
    """What comparing many outputs has shown."""

    outputs: int = 0
    tokens: int = 0
    differences: list[Difference] = field(default_factory=list)

    @property
    def excused(self) -> int:
        return sum(difference.excused for difference in self.differences)

    @property
    def faults(self) -> list[Difference]:
        """Differences that rounding does not explain."""
        return [difference for difference in self.differences if not difference.excused]

    @property
    def identical(self) -> bool:
        """True where every difference is a near-tie; False as well when nothing was compared."""
        return self.outputs > 0 and not self.faults


def first_difference(expected: Sequence[int], found: Sequence[int]) -> int | None:
    """Index of the first token that differs, a missing one included; None for equal sequences."""
    for index, (one, other) in enumerate(zip_longest(expected, found)):
        if one != other:
            return index
    return None


def compare(prompt: str, reference: Answer, found: Sequence[int], limit: float, go_on: Continue) -> list[Difference]:
    """Differences of one output from its reference, up to the first that is not excused.

    After an excused one the two texts have nothing more to do with each other, so the output is replaced by what the
    engine makes of the prompt and the reference up to and including that token.

    Args:
        reference: with ``gaps``.
        limit: gap under which a difference is excused.
        go_on: asks the engine for a continuation.
    """
    tokens = reference.token_ids
    differences: list[Difference] = []
    start = 0  # the reference's token that found[0] stands against
    while True:
        offset = first_difference(tokens[start:], found)
        if offset is None:
            return differences
        position = start + offset
        expected = tokens[position] if position < len(tokens) else None
        got = found[offset] if offset < len(found) else None
        gap = reference.gaps[position] if expected is not None else None
        excused = got is not None and gap is not None and gap < limit
        differences.append(Difference(prompt, position, expected, got, gap, excused))
        start = position + 1
        if not excused or start == len(tokens):
            return differences
        found = go_on([*reference.prompt_ids, *tokens[:start]], len(tokens) - start)
