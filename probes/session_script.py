"""What an engine did, as a script for another one: requests, knob changes and aborts, each with its step.

The workbench writes it from a recording, `engine.rerun` plays it.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Arrival(msgspec.Struct, frozen=True, kw_only=True, tag="arrival"):
    """A request came."""

    step: int
    """The newest step that was launched by then: the next one is the first that knew of it."""
    landed: int
    """The newest step whose result was known by then; below ``step`` while one flew (overlap)."""
    request_id: str
    prompt_token_ids: list[int]
    sampling: dict[str, Any]
    seed: int
    """The seed that its tokens were drawn by."""
    output_token_ids: list[int] | None
    """All that it emitted; None when its end is not known: it is run for its company, and not compared."""


class KnobChange(msgspec.Struct, frozen=True, kw_only=True, tag="knobs"):
    """Knobs changed, by hand or by themselves."""

    step: int
    landed: int
    new: dict[str, Any]


class Departure(msgspec.Struct, frozen=True, kw_only=True, tag="departure"):
    """A request was aborted."""

    step: int
    landed: int
    request_id: str


Action = Arrival | KnobChange | Departure


class SessionScript(msgspec.Struct, frozen=True, kw_only=True):
    """An engine, and what happened to it between its steps, in order."""

    source: str
    """Where it was read from, for people."""
    model: dict[str, Any]
    """As in the hello event, like ``config`` and ``draft``."""
    draft: dict[str, Any] | None
    config: dict[str, Any]
    knobs: dict[str, Any]
    """In force at ``step``."""
    step: int
    """The newest step before all that."""
    actions: list[Action]
    skipped: int
    """Requests that ran and cannot be run again, because their beginning is not known."""
    notes: list[str]
    """What keeps this from being the whole session, in words."""
