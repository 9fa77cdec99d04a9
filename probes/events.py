"""The events an engine publishes on the probe bus.

Every payload is a msgspec struct, encoded as a msgpack map (or JSON on request) with a ``type`` tag. New fields get
defaults and the meaning of a field never changes; readers skip what they do not know. docs/wire.md says the same in
words.

Counting words, the field's: *correct drafts* exclude the bonus token; *accept length* is emitted / verify steps and
includes it; *accept rate* is correct / proposed.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1

# Words that this version's producers use. The events have them as plain strings: a reader must live with the words of a
# newer engine, and shows one that it does not know as it came.
Mode = Literal["spec", "plain", "prefill", "mixed"]
RequestPhase = Literal["arrived", "first_token", "finished", "aborted", "preempted"]
AlertLevel = Literal["info", "warning", "error"]


class SpecInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the step speculated with."""

    algorithm: str
    steps: int
    """Draft depth: the longest path below the root."""
    topk: int
    draft_tokens: int
    """Nodes of the verify tree of one request, the root (bonus token) included."""
    capture_hidden_mode: str = "full"
    """Which rows of the target's forward keep their aux hidden states: ``full`` or ``last``."""


class StepShapes(msgspec.Struct, frozen=True, kw_only=True):
    """Shapes of the tensors that the target's forward really got, each as a list of sizes."""

    input_ids: list[int] = []
    seq_lens: list[int] = []
    extend_lens: list[int] = []
    out_cache_loc: list[int] = []
    hidden_states: list[int] = []
    padded_bucket: list[int] = []
    """[requests, width] that the decode rows were padded to, as graphs need it; empty where there are none."""


class KvUse(msgspec.Struct, frozen=True, kw_only=True):
    """Slots (tokens) of one KV pool."""

    used: int
    total: int


class StepEvent(msgspec.Struct, frozen=True, kw_only=True, tag="step"):
    """One engine iteration. Counts are of this step; times are microseconds unless said otherwise."""

    boot_id: str
    seq: int = 0
    """Sequence number in this topic, from 1 for each boot; the publisher sets it."""
    step: int
    t: float
    """Seconds since the epoch, derived from one monotonic clock started at boot; of a step: when it had landed."""
    scheduler: str
    """``sync``: the host waits for each step; ``overlap``: the next one is launched before this one has landed."""
    mode: str
    """A ``Mode``, or a newer engine's word."""
    reason: str
    """Stable code of the decision: see docs/wire.md."""
    reason_detail: str = ""
    """The same in words, with the numbers that decided."""
    knob_epoch: int = 0
    requests: int = 0
    """Decode requests in the step."""
    prefill_requests: int = 0
    prefill_tokens: int = 0
    queue: int = 0
    """Requests that wait for admission after this step was planned."""
    widths: dict[str, int] = {}
    """Tokens per decode request -> how many requests ran that wide."""
    slots_expected: int = 0
    """KV slots the plan asked for."""
    slots_reserved: int = 0
    """Length of what the allocator handed out."""
    slots_written: int = 0
    """Rows whose K and V the runner wrote."""
    slots_freed: int = 0
    """Slots given back after the step: rejected drafts and finished requests."""
    pages_allocated: int = 0
    shapes: StepShapes = StepShapes()
    graph: str | None = None
    """Graph key, or null when the step had none to look for (CPU, graphs off, a step with prompts)."""
    graph_hit: bool | None = None
    """False: that graph was not captured, and the step ran eager."""
    graph_misses: int | None = None
    """Steps since boot, this one included, that missed their graph; null where the engine does not count them."""
    spec_info: SpecInfo | None = None
    proposed: int = 0
    """Draft tokens verified, roots excluded."""
    correct_drafts: int = 0
    """Accepted draft tokens before stop and max_tokens cuts, bonus excluded."""
    correct_by_position: list[int] = []
    """Index d: requests whose draft at depth d+1 was accepted."""
    verified: int = 0
    """Requests that went through a verify in this step."""
    emitted: int = 0
    """Tokens handed to requests in this step, bonus included, after cuts."""
    discarded: int = 0
    """Verified tokens that a stop condition or max_tokens cut off."""
    overrun: int = 0
    """Requests that had ended, or left, before the step landed: it was planned past their end (overlap). They count in
    the plan's numbers (requests, widths, slots), and in nothing that came of the step."""
    accept_length: float | None = None
    """1 + correct_drafts / verified; null when nothing was verified."""
    draft_lag: int = 0
    """Committed tokens whose draft K and V are not written yet, over all running requests."""
    draft_debt_bytes: int = 0
    """Memory held by hidden states that wait for the draft sync."""
    kv: dict[str, KvUse] = {}
    """Pool name (``target``, ``draft``) -> use."""
    cpu_us: dict[str, int] = {}
    """Stage -> microseconds by the CPU's clock, waiting for the GPU (``wait``) included."""
    gpu_us: dict[str, int] = {}
    """Stage -> microseconds by CUDA events; ``idle`` is no stage but the time from the end of the step before."""
    round_us: int = 0
    """Start of the previous step to start of this one, on the host; 0 after an idle wait."""
    finished: int = 0
    """Requests that ended in this step."""
    simulated: bool = False
    """True when acceptance or weights are simulated."""
    replanned: bool = False
    """True when a first plan failed its reservation check and the step was planned again."""
    trace: dict[str, str] = {}
    """Which code set what: quantity -> ``module:function``. Filled where a count was made."""


class RequestRow(msgspec.Struct, frozen=True, kw_only=True):
    """One decode request in one step."""

    request_id: str
    width: int
    committed: int
    """Tokens with KV after the step."""
    emitted: int
    correct: int | None
    """Accepted drafts, or null when the request did not verify."""
    draft_lag: int
    token_ids: list[int] | None = None
    """Only with ``--publish-tokens``."""


class RowsEvent(msgspec.Struct, frozen=True, kw_only=True, tag="rows"):
    """Per-request rows of a step; made only while someone subscribes to the topic."""

    boot_id: str
    seq: int = 0
    step: int
    t: float
    rows: list[RequestRow]


class RequestEvent(msgspec.Struct, frozen=True, kw_only=True, tag="request"):
    """A request changed phase."""

    boot_id: str
    seq: int = 0
    step: int
    """Of ``first_token`` and ``finished``: the step that gave it. Of ``arrived``, and where a client left: the newest
    step that was launched by then; the next one is the first that knew of it."""
    t: float
    request_id: str
    phase: str
    """A ``RequestPhase``, or a newer engine's word."""
    prompt_tokens: int = 0
    output_tokens: int = 0
    max_tokens: int = 0
    finish_reason: str | None = None
    verify_steps: int = 0
    correct_drafts: int = 0
    proposed: int = 0
    accept_length: float | None = None
    """Of the whole request so far: 1 + correct_drafts / verify_steps; null when it never verified."""
    ttft_ms: float | None = None
    e2e_ms: float | None = None
    error: str | None = None
    prompt_token_ids: list[int] | None = None
    """On ``arrived``, and only with ``--publish-tokens``; as ``sampling`` and ``seed``."""
    sampling: dict[str, Any] | None = None
    """What was asked of sampling, by the engine's names, stop strings included; ``seed`` in it is the one asked for."""
    seed: int | None = None
    """The seed that its tokens are drawn by: the one asked for, or the engine's own."""
    output_token_ids: list[int] | None = None
    """On ``finished`` and ``aborted``, and only with ``--publish-tokens``: all that it emitted."""


class KnobRevert(msgspec.Struct, frozen=True, kw_only=True):
    """A knob that goes back by itself."""

    knob: str
    back_to: Any
    t: float
    """When it is due; as ``t`` of the events."""
    who: str = ""
    """Of the change that will be taken back."""
    why: str = ""


class KnobEvent(msgspec.Struct, frozen=True, kw_only=True, tag="knob"):
    """Knobs changed, between two steps; or only how long they stay (then ``old`` and ``new`` are the same)."""

    boot_id: str
    seq: int = 0
    step: int
    """First step that runs with the new values."""
    t: float
    knob_epoch: int
    old: dict[str, Any]
    new: dict[str, Any]
    who: str = ""
    why: str = ""
    revert_at: float | None = None
    """When the knobs in ``back_to`` go back by themselves, as ``t``; null when all stay."""
    back_to: dict[str, Any] = {}
    """Knob -> value it will go back to. A knob of ``new`` that is not here stays: what waited for it is off."""


class AlertEvent(msgspec.Struct, frozen=True, kw_only=True, tag="alert"):
    """Something an operator should look at."""

    boot_id: str
    seq: int = 0
    step: int
    t: float
    code: str
    """Stable: ``plan_mismatch``, ``policy_flaps``, ``acceptance_collapsed``, ``subscriber_loss``, ``invariant``…"""
    level: str
    """An ``AlertLevel``, or a newer engine's word."""
    message: str
    data: dict[str, Any] = {}


class DropEvent(msgspec.Struct, frozen=True, kw_only=True, tag="drop"):
    """The publisher itself dropped events before they were sent."""

    boot_id: str
    seq: int = 0
    t: float
    topic: str
    first_seq: int
    count: int
    total: int
    """Dropped since boot, over all topics."""


class HeartbeatEvent(msgspec.Struct, frozen=True, kw_only=True, tag="heartbeat"):
    """Once a second from the publisher's own thread, whatever the engine loop does."""

    boot_id: str
    seq: int = 0
    t: float
    stage: str
    """Stage the engine's loop is in; ``idle`` when it waits for work."""
    stage_s: float
    """Seconds it has been there."""
    step: int
    last_seqs: dict[str, int] = {}
    """Topic -> newest sequence number, so that a reader notices a lost tail."""
    dropped: int = 0


class HelloEvent(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """Who the engine is. Sent at boot, and as the answer to a ``hello`` control request."""

    boot_id: str
    seq: int = 0
    t: float
    schema_version: int = SCHEMA_VERSION
    name: str
    engine_version: str
    pid: int
    model: dict[str, Any]
    """name, architecture, parameters, dtype, device, context length, source."""
    draft: dict[str, Any] | None
    config: dict[str, Any]
    knobs: dict[str, Any]
    knob_epoch: int
    step: int
    which: dict[str, Any]
    """What really runs: role -> {value, defined (file:line), why}."""
    last_seqs: dict[str, int] = {}
    simulated: bool = False
    reverts: list[KnobRevert] = []
    """Knobs that go back by themselves, soonest first."""


Event = StepEvent | RowsEvent | RequestEvent | KnobEvent | AlertEvent | DropEvent | HeartbeatEvent | HelloEvent

TOPICS: dict[str, type[msgspec.Struct]] = {
    "step": StepEvent,
    "rows": RowsEvent,
    "request": RequestEvent,
    "knob": KnobEvent,
    "alert": AlertEvent,
    "drop": DropEvent,
    "heartbeat": HeartbeatEvent,
    "hello": HelloEvent,
}


def topic_of(event: Event) -> str:
    """The topic an event travels on: its tag."""
    tag = type(event).__struct_config__.tag
    assert isinstance(tag, str)
    return tag
