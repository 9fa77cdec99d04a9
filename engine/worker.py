"""What runs a planned step: draft, forward, acceptance and draft sync.

A step is launched and lands later. The sync scheduler lands it at once; the overlap scheduler launches the next one
first, so a worker keeps what the next step needs (newest tokens, committed lengths, the draft's state) itself and reads
none of it from the host's requests, which are a step behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.accepted import Accepted
from engine.ipc import TokenLogprobs
from engine.kv.ledger import Reservation
from engine.stage_clock import StepClock
from engine.step_plan import StepPlan
from probes.events import StepShapes
from probes.knobs import DraftSync, Knobs


def no_logprobs(entry: Accepted, tokens: list[int]) -> list[TokenLogprobs]:
    """For a step in which nobody asked for them."""
    raise RuntimeError(f"no log probabilities were kept for {entry.request.request_id}")


@dataclass(frozen=True)
class Landed:
    """The result of a step, on the host."""

    entries: list[Accepted]  # one a request of the plan, in its order
    slots_written: int
    written_by: str  # ``module:function`` that counted them
    shapes: StepShapes
    graph: str | None = None
    graph_hit: bool | None = None
    gpu_us: dict[str, int] = field(default_factory=dict)
    logprobs: Callable[[Accepted, list[int]], list[TokenLogprobs]] = no_logprobs
    """(entry, the tokens it emits) -> theirs; for requests that asked."""


class Worker(Protocol):
    """Runs steps in the order they are launched."""

    @property
    def name(self) -> str:
        """How the hello calls it."""

    @property
    def algorithm(self) -> str | None:
        """The proposer, as it stands in ``spec_info``; None without a draft."""

    @property
    def aux_layers(self) -> tuple[int, ...]:
        """Boundaries of the target whose hidden states the draft reads; empty: none."""

    @property
    def needs_landed(self) -> bool:
        """Whether a step may only be launched when the lengths of its requests are exact."""

    @property
    def even_widths(self) -> bool:
        """Whether each width of a step is a pass of its own through the target: one width is then worth more tokens."""

    def check(self, knobs: Knobs) -> None:
        """Refuse knobs it cannot serve (`probes.knobs.KnobError`)."""

    def launch(self, plan: StepPlan, reservation: Reservation, sync: DraftSync, clock: StepClock) -> Any:
        """Start a step; what comes back is handed to `land`, once, in the order of the launches."""

    def land(self, launched: Any) -> Landed:
        """Wait for a launched step."""

    def forget(self, request_id: str) -> None:
        """A request ended, also while a step of it is in flight; unknown ids are ignored."""

    def lag(self, request_id: str) -> int:
        """Committed tokens that the draft's state does not cover yet."""

    def used_slots(self) -> int:
        """Slots of the draft's pool that hold K and V."""

    def debt_bytes(self) -> int:
        """Memory of hidden states that wait for the draft sync."""
