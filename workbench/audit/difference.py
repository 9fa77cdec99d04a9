"""Two numbers that should be one, and who says which."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """``where``: request, step or total. Each side is (who says so, what it says)."""

    where: str
    what: str
    one: tuple[str, object]
    other: tuple[str, object]

    @property
    def text(self) -> str:
        return f"{self.where}: {self.what}: {self.one[0]} {self.one[1]}, {self.other[0]} {self.other[1]}"

    def as_json(self) -> dict[str, object]:
        return {
            "where": self.where,
            "what": self.what,
            "sources": [self.one[0], self.other[0]],
            "values": [self.one[1], self.other[1]],
        }


@dataclass(frozen=True)
class Left:
    """A client that hung up: what was emitted and not delivered was on its way then. No difference."""

    request: str
    delivered: int
    emitted: int
    was_aborted: bool
    """False: the answer was finished before the abort came."""


class Findings:
    """Counts what was compared and keeps what differs."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.compared: dict[str, int] = {}
        """Pair of sources -> numbers compared."""
        self.left: list[Left] = []
        self.notes: list[str] = []
        """What is no difference, and worth a line."""

    def same(self, where: str, what: str, one: tuple[str, object], other: tuple[str, object]) -> bool:
        """Compare two sides, name them if they differ; whether they are one."""
        pair = f"{one[0]} / {other[0]}"
        self.compared[pair] = self.compared.get(pair, 0) + 1
        if one[1] == other[1]:
            return True
        self.differences.append(Difference(where, what, one, other))
        return False
