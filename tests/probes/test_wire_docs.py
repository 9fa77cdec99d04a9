"""docs/wire.md: its reader works as printed, and it names every field, message and code that there is."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from probes.control import RefusedCode, Reply, Request
from probes.discovery import EngineRecord, new_record, write_record
from probes.endpoints import Endpoints
from probes.events import TOPICS, KvUse, RequestRow, SpecInfo, StepEvent, StepShapes
from probes.knobs import KNOBS
from probes.runtime_dir import engine_dir
from probes.wire import ReplayEnd, ReplayRequest, Welcome
from tests.probes.fake_engine import DEADLINE_S, running

PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()


def tag_of(kind: type[msgspec.Struct]) -> str:
    tag = kind.__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def names_in_page() -> set[str]:
    return set(re.findall(r"`([a-z0-9_]+)`", PAGE))


def test_reader_on_the_page_works(runtime: Path, tmp_path: Path) -> None:
    script = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert script is not None
    path = tmp_path / "reader.py"
    path.write_text(script[1])
    endpoints = Endpoints.in_dir(engine_dir("main"))
    record = write_record(new_record("main", boot_id="boot-1", endpoints=endpoints, model="none"))
    with running(endpoints) as engine:
        reader = subprocess.Popen([sys.executable, str(path), str(record)], stdout=subprocess.PIPE, text=True)
        killer = threading.Timer(DEADLINE_S, reader.kill)
        killer.start()
        try:
            assert reader.stdout is not None
            done = threading.Event()

            def publish() -> None:  # until it has joined: it has no handshake
                while not done.wait(0.02):
                    engine.publish_steps(1, mode="spec", reason="threshold", slots_reserved=160, accept_length=2.5)

            publisher = threading.Thread(target=publish)
            publisher.start()
            lines = [reader.stdout.readline().split() for _ in range(3)]
            done.set()
            publisher.join()
        finally:
            killer.cancel()
            reader.kill()
            reader.communicate()
    first = int(lines[0][0])
    assert lines == [[str(first + i), "spec", "threshold", "160", "2.5"] for i in range(3)]


@pytest.mark.parametrize(
    "kind", [*TOPICS.values(), *get_args(Request), *get_args(Reply), ReplayRequest, ReplayEnd, Welcome]
)
def test_every_message_and_field_is_named(kind: type[msgspec.Struct]) -> None:
    missing = {tag_of(kind), *kind.__struct_fields__} - names_in_page()
    assert not missing


@pytest.mark.parametrize("kind", [SpecInfo, StepShapes, KvUse, RequestRow, EngineRecord])
def test_every_part_is_named(kind: type[msgspec.Struct]) -> None:
    assert not set(kind.__struct_fields__) - names_in_page()


def test_step_table_has_a_row_a_field_in_order() -> None:
    table = PAGE[PAGE.index("## The step event") : PAGE.index("### Reason codes")]
    rows = re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)
    assert rows == ["type", *StepEvent.__struct_fields__]


def test_every_code_and_knob_is_named() -> None:
    assert not {*get_args(RefusedCode), *KNOBS} - names_in_page()
    for spec in KNOBS.values():
        rows = [line for line in PAGE.splitlines() if line.startswith(f"| `{spec.name}` |")]
        expected = ", ".join(f"`{choice}`" for choice in spec.choices) or f"{spec.low} to {spec.high}"
        assert any(expected in row for row in rows), f"{rows} do not say {expected}"
