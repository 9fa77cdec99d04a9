"""Data taken out of recordings."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from probes.events import TOPICS
from tests.docs.pages import page
from tests.workbench.recording.made_recording import session, write
from workbench.cli.tail import incident
from workbench.recording.export import STAGES, csv_columns, csv_lines, json_lines
from workbench.recording.reader import Recording


def test_json_lines_are_those_of_tail(tmp_path: Path) -> None:
    with Recording.open(write(tmp_path / "x.mcap")) as recording:
        found = [json.loads(line) for line in json_lines(recording)]
        assert len(list(json_lines(recording, ("knob", "gap")))) == 3
    assert len(found) == len(session())
    assert found[1]["accept_length"] == pytest.approx(1 + 4 / 3)
    assert found[15]["accept_length"] is None  # what is null is said here
    for line, item in zip(found, session(), strict=True):
        if type(item).__name__ in ("Gap", "Restart", "Malformed"):
            told = incident(item)  # type: ignore[arg-type]
            assert {name: line[name] for name in told} == told


def test_rows_of_steps(tmp_path: Path) -> None:
    with Recording.open(write(tmp_path / "x.mcap")) as recording:
        rows = list(csv.DictReader(csv_lines(recording)))
    assert len(rows) == 58
    assert list(rows[0]) == csv_columns("step")
    first = rows[0]
    assert (first["step"], first["mode"], first["widths"], first["spec_draft_tokens"]) == ("1", "spec", "16:3", "16")
    assert (first["kv_target_used"], first["cpu_run_us"], first["simulated"]) == ("1641", "38630", "false")
    assert first["correct_by_position"] == "3 1"
    plain = rows[12]
    assert (plain["accept_length"], plain["spec_algorithm"], plain["widths"]) == ("", "", "1:8")


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_has_rows(tmp_path: Path, topic: str) -> None:
    with Recording.open(write(tmp_path / "x.mcap")) as recording:
        rows = list(csv.reader(csv_lines(recording, topic)))
    assert len(rows) > 1
    assert {len(row) for row in rows} == {len(rows[0])}
    assert rows[0] == csv_columns(topic)


def test_no_such_topic(tmp_path: Path) -> None:
    with (
        Recording.open(write(tmp_path / "x.mcap")) as recording,
        pytest.raises(ValueError, match="there are no rows of 'gap'; the topics are step"),
    ):
        list(csv_lines(recording, "gap"))


def test_stages_are_those_of_the_wire() -> None:
    line = next(line for line in page("docs/wire.md").splitlines() if line.startswith("| `cpu_us`"))
    assert re.findall(r"`(\w+)`", line)[1:] == list(STAGES)


def test_the_columns_are_on_the_page() -> None:
    (told,) = re.findall(r"`(seconds, .*?)`", page("docs/operations.md").replace("\n", " "))
    assert told.split(", ") == csv_columns("step")
