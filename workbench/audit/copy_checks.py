"""A recording against the bus: the same events, field by field, none left out and none added."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from probes.events import KnobEvent, RequestEvent, RowsEvent, StepEvent, topic_of
from probes.subscriber import Gap, Malformed, Received, Restart
from workbench.audit.difference import Findings
from workbench.audit.evidence import Evidence
from workbench.recording.request_tokens import without_tokens

BUS, RECORDING = "bus", "recording"
COMPARED = (StepEvent, RequestEvent, RowsEvent, KnobEvent)

Key = tuple[str, str, int]
"""Boot, topic, number."""


def check_recording(evidence: Evidence, findings: Findings) -> None:
    """Compare every step, request, row and knob event of the audit."""
    if evidence.recording is None:
        return
    findings.same("the recording", "what stopped it", (RECORDING, evidence.recording_error), ("nothing should", ""))
    findings.same("the recording", "events lost", (RECORDING, evidence.recording_lost), ("none expected", 0))
    bus, recorded = _by_number(map(_recorded, evidence.bus)), _by_number(evidence.recording)
    for key, event in bus.items():
        copy = recorded.get(key)
        where = f"{key[1]} event {key[2]}" + (f" (step {event.step})" if isinstance(event, StepEvent) else "")
        if copy is None:
            findings.same(where, "the event", (BUS, "came"), (RECORDING, "does not have it"))
            continue
        for name in _differing(event, copy) or [""]:
            what, one, other = (name, getattr(event, name), getattr(copy, name)) if name else ("all fields", 0, 0)
            findings.same(where, what, (BUS, one), (RECORDING, other))
    for key in recorded.keys() - bus.keys():
        last = max((number for boot, topic, number in bus if (boot, topic) == key[:2]), default=0)
        first = min((number for boot, topic, number in bus if (boot, topic) == key[:2]), default=0)
        if first <= key[2] <= last:
            findings.same(f"{key[1]} event {key[2]}", "the event", (BUS, "did not come"), (RECORDING, "has it"))


def _recorded(item: Received) -> Received:
    """What a recording keeps of an item: token ids stay on the bus."""
    return item if isinstance(item, Gap | Restart | Malformed) else without_tokens(item)


def _by_number(items: Iterable[Received]) -> dict[Key, StepEvent | RequestEvent | RowsEvent | KnobEvent]:
    return {(item.boot_id, topic_of(item), item.seq): item for item in items if isinstance(item, COMPARED)}


def _differing(one: msgspec.Struct, other: msgspec.Struct) -> list[str]:
    """Names of the fields in which they differ."""
    if one == other:
        return []
    return [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]
