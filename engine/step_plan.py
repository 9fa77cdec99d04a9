"""The plan of one step: immutable, made once, and everything downstream is sized from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engine.kv.ledger import Reservation
from engine.request import Request
from engine.spec.choice import SpecChoice
from probes.events import Mode


class PlanMismatch(RuntimeError):
    """Two stages disagree on a count of the step: slots planned, reserved or written, rows, or a tree's width."""

    def __init__(self, quantity: str, expected: int, expected_by: str, found: int, found_by: str) -> None:
        super().__init__(f"{quantity}: {expected} expected (set by {expected_by}), {found} found (set by {found_by})")
        self.data: dict[str, str | int] = {
            "quantity": quantity,
            "expected": expected,
            "expected_by": expected_by,
            "found": found,
            "found_by": found_by,
        }
        """The same for programs, as it stands in the alert."""


@dataclass(frozen=True)
class DecodeRow:
    """A decode request of the step and the tokens it verifies; width 1 is a plain decode."""

    request: Request
    width: int
    start_min: int = -1
    """Tokens with KV when the step begins, at least; -1 in a plan that only counts."""
    start_max: int = -1
    """And at most: more than ``start_min`` while a verify of the request is in flight."""


@dataclass(frozen=True)
class PrefillChunk:
    """Prompt tokens start..start + length - 1 of a request."""

    request: Request
    start: int
    length: int

    @property
    def is_last(self) -> bool:
        return self.start + self.length == self.request.prompt_len


@dataclass(frozen=True)
class StepPlan:
    """What the step will run. Rows are in the order of the flat batch: decodes first, then prefill chunks."""

    step: int
    choice: SpecChoice
    decodes: tuple[DecodeRow, ...]
    prefills: tuple[PrefillChunk, ...]
    set_by: str = "engine.step_plan:make_plan"

    @property
    def mode(self) -> Mode:
        if self.speculates:
            return "spec"
        if not self.prefills:
            return "plain"
        return "mixed" if self.decodes else "prefill"

    @property
    def speculates(self) -> bool:
        return any(row.width > 1 for row in self.decodes)

    @property
    def widths(self) -> dict[int, int]:
        """Tokens per decode request -> how many requests."""
        return dict(Counter(row.width for row in self.decodes))

    @property
    def prefill_tokens(self) -> int:
        return sum(chunk.length for chunk in self.prefills)

    @property
    def slots(self) -> int:
        """KV slots the step needs: the sum over widths, plus prefill tokens."""
        return sum(row.width for row in self.decodes) + self.prefill_tokens

    @property
    def rows(self) -> list[tuple[str, int]]:
        """(request id, tokens) in the order of the flat batch."""
        decodes = [(row.request.request_id, row.width) for row in self.decodes]
        return decodes + [(chunk.request.request_id, chunk.length) for chunk in self.prefills]

    @property
    def requests(self) -> list[Request]:
        return [row.request for row in self.decodes] + [chunk.request for chunk in self.prefills]


def drafting(decodes: Sequence[Request], *, even: bool) -> list[bool]:
    """Which of them verify a tree if the step speculates: those that could use drafts.

    ``even``: rows of another width would cost a pass of their own. Then a request with one token left verifies too,
    in a step in which others do; one that keeps no draft cannot.
    """
    gaining = [request.can_draft for request in decodes]
    return [not request.stays_plain for request in decodes] if even and any(gaining) else gaining


def widths_of(decodes: Sequence[Request], choice: SpecChoice, *, even: bool) -> list[int]:
    """Tokens that each decode request verifies: the choice's width, or 1 for those that do not draft."""
    if not choice.speculate:
        return [1] * len(decodes)
    return [choice.draft_tokens if drafts else 1 for drafts in drafting(decodes, even=even)]


def make_plan(
    step: int,
    choice: SpecChoice,
    decodes: Sequence[Request],
    prefills: Sequence[PrefillChunk],
    *,
    even: bool,
) -> StepPlan:
    """Plan a step. Prefill chunks share a step with one-wide decodes, never with verification. ``even``: `drafting`."""
    rows = tuple(
        DecodeRow(request, width, request.committed + request.flying_least, request.committed + request.flying_most)
        for request, width in zip(decodes, widths_of(decodes, choice, even=even), strict=True)
    )
    return StepPlan(step, choice, rows, tuple(prefills))


def check_reservation(plan: StepPlan, reservation: Reservation) -> None:
    """Compare the plan with what the allocator handed out, before any kernel.

    Raises:
        PlanMismatch: naming both numbers and who made them.
    """
    if plan.slots != reservation.slots:
        raise PlanMismatch("slots", plan.slots, plan.set_by, reservation.slots, reservation.set_by)
