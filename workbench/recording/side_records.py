"""What a recording holds beside the bus's own events: losses, restarts, unreadable messages, and marks.

Each kind has a channel of its own, so that whoever looks for one of them need not read the steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from probes.events import AlertEvent, KnobEvent, StepEvent
from probes.subscriber import Gap, Malformed, Received, Restart
from workbench.step_words import knob_text

MarkKind = Literal["switch", "knob", "alert", "gap", "restart", "bookmark"]


class GapRecord(msgspec.Struct, frozen=True, kw_only=True, tag="gap"):
    """Events ``first`` to ``last`` of a topic did not reach the recorder by themselves."""

    boot_id: str = ""
    topic: str
    first: int
    last: int
    recovered: bool


class RestartRecord(msgspec.Struct, frozen=True, kw_only=True, tag="restart"):
    """The engine started anew; what follows is of the new boot."""

    old_boot: str
    new_boot: str


class MalformedRecord(msgspec.Struct, frozen=True, kw_only=True, tag="malformed"):
    """A message that could not be read, and was skipped."""

    boot_id: str = ""
    reason: str
    frames: int
    topic: str = ""
    seq: int | None = None


class MarkRecord(msgspec.Struct, frozen=True, kw_only=True, tag="mark"):
    """A place worth finding: a mode switch, or a person's bookmark."""

    boot_id: str = ""
    kind: Literal["switch", "bookmark"]
    step: int = 0
    """The step it belongs to, or the newest one known then; 0 when there is none."""
    text: str


SideRecord = GapRecord | RestartRecord | MalformedRecord | MarkRecord

SIDE_CHANNELS: dict[str, type[msgspec.Struct]] = {
    "gap": GapRecord,
    "restart": RestartRecord,
    "malformed": MalformedRecord,
    "mark": MarkRecord,
}


@dataclass(frozen=True)
class RecordingMark:
    """A mark as a player shows it: where, what kind, and in words."""

    t: float
    kind: MarkKind
    text: str


def side_record(item: Gap | Restart | Malformed, boot_id: str) -> SideRecord:
    """What is written for an item that is no event."""
    match item:
        case Gap():
            return GapRecord(
                boot_id=boot_id, topic=item.topic, first=item.first, last=item.last, recovered=item.recovered
            )
        case Restart():
            return RestartRecord(old_boot=item.old_boot, new_boot=item.new_boot)
        case Malformed():
            return MalformedRecord(
                boot_id=boot_id, reason=item.reason, frames=item.frames, topic=item.topic, seq=item.seq
            )


def received(record: GapRecord | RestartRecord | MalformedRecord) -> Received:
    """The item that was recorded."""
    match record:
        case GapRecord():
            return Gap(record.topic, record.first, record.last, record.recovered)
        case RestartRecord():
            return Restart(record.old_boot, record.new_boot)
        case MalformedRecord():
            return Malformed(record.reason, record.frames, record.topic, record.seq)


def switch_mark(step: StepEvent) -> MarkRecord:
    """The mark of a step with which speculation went on or off."""
    words = "plain → spec" if step.mode == "spec" else "spec → plain"
    why = step.reason + (f": {step.reason_detail}" if step.reason_detail else "")
    return MarkRecord(boot_id=step.boot_id, kind="switch", step=step.step, text=f"{words}: {why}")


def mark_of(t: float, item: Received | MarkRecord) -> RecordingMark | None:
    """An item as a mark; None for one that is none (a gap whose events came after all, a step)."""
    match item:
        case MarkRecord():
            return RecordingMark(t, item.kind, item.text)
        case KnobEvent():
            by = f" by {item.who}" if item.who else ""
            why = f" ({item.why})" if item.why else ""
            return RecordingMark(t, "knob", f"{knob_text(item)}{by}{why}")
        case AlertEvent():
            return RecordingMark(t, "alert", f"{item.level} {item.code}: {item.message}")
        case Gap() if not item.recovered:
            return RecordingMark(t, "gap", f"{item.count} {item.topic} events lost ({item.first} to {item.last})")
        case Restart():
            return RecordingMark(t, "restart", f"engine restarted: boot {item.old_boot} → {item.new_boot}")
    return None
