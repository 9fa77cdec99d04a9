"""A recording as lines of text: one JSON object an item, or one row an event of one topic."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from probes.events import TOPICS, Event, StepEvent
from probes.subscriber import Gap, Malformed, Restart
from workbench.recording.channels import encode
from workbench.recording.reader import Recording
from workbench.recording.side_records import side_record

STAGES = ("schedule", "decide", "plan", "reserve", "draft", "run", "accept", "sync", "wait", "commit", "publish")
GPU_STAGES = ("idle", "draft", "run", "accept", "sync", "prefill")
POOLS = ("target", "draft")

_SCALAR = inspect.StrType | inspect.IntType | inspect.FloatType | inspect.BoolType | inspect.LiteralType


def json_lines(recording: Recording, topics: Collection[str] | None = None) -> Iterator[str]:
    """Every item as the JSON object that `specwb tail --json` prints for it, a gap or restart included."""
    boot_id = ""
    for _, item in recording.items(topics=topics):
        if isinstance(item, Gap | Restart | Malformed):
            boot_id = item.new_boot if isinstance(item, Restart) else boot_id
            yield encode(side_record(item, boot_id)).decode()
        else:
            boot_id = item.boot_id
            yield msgspec.json.encode(item).decode()


def csv_lines(recording: Recording, topic: str = "step") -> Iterator[str]:
    """A header, then a row an event; what is null is empty.

    Raises:
        ValueError: no topic of the bus.
    """
    if topic not in TOPICS:
        raise ValueError(f"there are no rows of {topic!r}; the topics are {', '.join(TOPICS)}")
    columns = _columns(topic)
    yield _line(["seconds", *columns])
    start = recording.info.start
    for t, item in recording.items(topics=(topic,)):
        if not isinstance(item, Gap | Restart | Malformed):
            yield _line([f"{t - start:.6f}", *(value(item) for value in columns.values())])


def csv_columns(topic: str) -> list[str]:
    """The header of a topic's rows."""
    return ["seconds", *_columns(topic)]


def _columns(topic: str) -> dict[str, Callable[[Event], Any]]:
    """Column -> how its value is taken: all plain fields in the order of the wire, then what a step has in maps."""
    columns: dict[str, Callable[[Event], Any]] = {}
    info = inspect.type_info(TOPICS[topic])
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        kinds = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
        if all(isinstance(kind, _SCALAR | inspect.NoneType) for kind in kinds):
            columns[field.name] = _attribute(field.name)
    if topic == "step":
        columns |= {f"spec_{name}": _spec(name) for name in ("algorithm", "steps", "topk", "draft_tokens")}
        columns["widths"] = lambda step: _pairs(_step(step).widths)
        columns["correct_by_position"] = lambda step: " ".join(map(str, _step(step).correct_by_position))
        columns |= {f"kv_{pool}_{use}": _kv(pool, use) for pool in POOLS for use in ("used", "total")}
        columns |= {f"cpu_{stage}_us": _stage("cpu_us", stage) for stage in STAGES}
        columns |= {f"gpu_{stage}_us": _stage("gpu_us", stage) for stage in GPU_STAGES}
    return columns


def _attribute(name: str) -> Callable[[Event], Any]:
    return lambda event: getattr(event, name)


def _spec(name: str) -> Callable[[Event], Any]:
    return lambda step: getattr(_step(step).spec_info, name, None)


def _kv(pool: str, use: str) -> Callable[[Event], Any]:
    return lambda step: getattr(_step(step).kv.get(pool), use, None)


def _stage(clock: str, stage: str) -> Callable[[Event], Any]:
    return lambda step: getattr(step, clock).get(stage)


def _pairs(widths: dict[str, int]) -> str:
    """``16:7 1:3``: tokens a request, how many ran that wide; widest first."""
    return " ".join(f"{width}:{count}" for width, count in sorted(widths.items(), key=lambda item: -int(item[0])))


def _step(event: Event) -> StepEvent:
    assert isinstance(event, StepEvent)
    return event


def _line(values: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(["" if value is None else _text(value) for value in values])
    return out.getvalue()


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
