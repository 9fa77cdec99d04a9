"""One request inside the engine, from arrival to its last token."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.ipc import FinishReason
from engine.sampling_params import SamplingParams
from engine.stop_conditions import StopConditions


@dataclass
class Request:
    """A request and how far it is. ``ids`` = prompt + output; the newest sampled token has no KV yet."""

    request_id: str
    prompt_len: int
    ids: list[int]
    sampling: SamplingParams
    seed: int
    max_tokens: int  # clamped to the room that the context leaves
    stops: StopConditions
    arrived: float  # monotonic seconds
    committed: int = 0  # tokens with KV in the target's pool, by the steps that have landed
    flying_least: int = 0  # tokens that the steps in flight will commit, at least
    flying_most: int = 0  # and at most: a verify keeps between one and all of its nodes
    flying_emits: int = 0  # tokens that the steps in flight will emit, at least
    stays_plain: bool = False  # draft_sync=sticky: fell back to plain, its draft KV is gone
    first_token_at: float | None = None
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None
    verify_steps: int = 0
    correct_drafts: int = 0
    proposed: int = 0
    correct_by_position: list[int] = field(default_factory=list)

    @property
    def in_prefill(self) -> bool:
        """Whether prompt tokens are left that no step has taken; the length of a chunk in flight is exact."""
        return self.committed + self.flying_most < self.prompt_len

    @property
    def has_landed_prompt(self) -> bool:
        return self.committed >= self.prompt_len

    @property
    def output_len(self) -> int:
        return len(self.ids) - self.prompt_len

    @property
    def remaining(self) -> int:
        """Tokens it may still emit."""
        return self.max_tokens - self.output_len

    @property
    def may_emit(self) -> int:
        """Tokens it may still emit once the steps in flight have landed, at most."""
        return self.remaining - self.flying_emits

    @property
    def probably_ends(self) -> bool:
        """Whether the verify in flight will likely give all that is left, by the accept length so far."""
        length = self.accept_length
        return self.flying_most > self.flying_least and length is not None and self.remaining <= round(length)

    @property
    def can_draft(self) -> bool:
        """Whether a verify could gain anything: it keeps a draft, and more than one token may come."""
        return not self.stays_plain and self.may_emit > 1

    @property
    def worst_case(self) -> int:
        """Most tokens that will ever have KV: the last one emitted never gets any."""
        return self.prompt_len + self.max_tokens - 1

    @property
    def is_finished(self) -> bool:
        return self.finish_reason is not None

    @property
    def accept_length(self) -> float | None:
        """Tokens a verify step gives, bonus included, before cuts; None when it never verified."""
        return 1 + self.correct_drafts / self.verify_steps if self.verify_steps else None
