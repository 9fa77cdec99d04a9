"""Which requests take part in a step: admission, prefill chunks, decodes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from engine.kv.ledger import KvLedger
from engine.request import Request
from engine.spec.choice import SpecChoice
from engine.step_plan import PrefillChunk, StepPlan, make_plan


class QueueFullError(RuntimeError):
    """More requests wait than ``max_queue`` allows."""


@dataclass(frozen=True)
class Candidates:
    """What could run in the next step."""

    decodes: list[Request]  # by slot, so that attention sees runs of equally spaced requests
    prefills: list[PrefillChunk]
    held: int = 0
    """Decodes that sit this step out: the one in flight will likely be their last. They count as running."""

    @property
    def running(self) -> int:
        """Decode requests by which the policy decides."""
        return len(self.decodes) + self.held


class Scheduler:
    """First come, first served. A request is admitted when its worst case fits, so nothing is ever preempted."""

    def __init__(
        self,
        ledger: KvLedger,
        *,
        max_running: int,
        max_queue: int,
        prefill_chunk: int,
        name: str = "sync",
    ) -> None:
        """``name``: ``sync`` or ``overlap``, for the events; who may run is decided alike."""
        self.name = name
        self._ledger = ledger
        self._max_running = max_running
        self._max_queue = max_queue
        self._prefill_chunk = prefill_chunk
        self._prefill_ran_alone = False  # the last step was a prefill that made decodes wait and finished no prompt
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    @property
    def has_work(self) -> bool:
        return bool(self.waiting or self.running)

    def add(self, request: Request) -> None:
        """Queue a request.

        Raises:
            QueueFullError: too many wait already.
        """
        if len(self.waiting) >= self._max_queue:
            raise QueueFullError(
                f"{len(self.waiting)} requests wait already (limit {self._max_queue}); try again later"
            )
        self.waiting.append(request)

    def find(self, request_id: str) -> Request | None:
        for request in (*self.running, *self.waiting):
            if request.request_id == request_id:
                return request
        return None

    def remove(self, request: Request) -> None:
        """Take a request out, whether it waits or runs."""
        if request in self.running:
            self.running.remove(request)
        else:
            self.waiting.remove(request)

    def schedule(self) -> Candidates:
        """Admit what fits, then list decodes and up to ``prefill_chunk`` prompt tokens."""
        while self.waiting and len(self.running) < self._max_running:
            request = self.waiting[0]
            if not self._ledger.admit(request.request_id, request.worst_case):
                break
            self.running.append(self.waiting.popleft())
        budget = self._prefill_chunk
        chunks: list[PrefillChunk] = []
        decodes: list[Request] = []
        for request in self.running:
            if not request.in_prefill:
                if request.may_emit > 0:  # else a step in flight is its last
                    decodes.append(request)
            elif budget > 0:
                start = request.committed + request.flying_most
                length = min(budget, request.prompt_len - start)
                chunks.append(PrefillChunk(request, start, length))
                budget -= length
        # A row behind a request's end is work for nothing: it is planned only where the device would else stand still.
        kept = [request for request in decodes if not request.probably_ends]
        held = len(decodes) - len(kept) if kept else 0
        decodes = kept or decodes
        decodes.sort(key=lambda request: self._ledger.slots_of(request.request_id).pages[0])
        return Candidates(decodes, chunks, held)

    def plan(self, step: int, choice: SpecChoice, candidates: Candidates, *, even: bool) -> StepPlan:
        """Turn candidates and a decision into a plan. ``even``: see `engine.step_plan.drafting`.

        While speculating, prefill is a step of its own; one that finishes no prompt (a long one's chunk) lets the
        decodes have the next step.
        """
        decodes, prefills = candidates.decodes, candidates.prefills
        if choice.speculate and decodes and prefills:
            if self._prefill_ran_alone:
                prefills = []
            else:
                decodes = []
        return make_plan(step, choice, decodes, prefills, even=even)

    def note_planned(self, plan: StepPlan, candidates: Candidates) -> None:
        """The plan will run: remember whether its prefill made decodes wait and finished no prompt."""
        waits = len(candidates.decodes) > len(plan.decodes)
        self._prefill_ran_alone = waits and not any(chunk.is_last for chunk in plan.prefills)
