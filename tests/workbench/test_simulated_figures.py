"""Every command that prints a figure of an engine says beside it that the engine is simulated, in JSON too."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from probes.ci.comparison import Tally
from probes.discovery import write_record
from probes.events import HelloEvent, RequestEvent, RequestRow, RowsEvent
from probes.subscriber import Received
from tests.workbench import made_events as made
from tests.workbench.bench.foreign_endpoint import ForeignEndpoint
from tests.workbench.conftest import MakeEngine
from tests.workbench.made_engine import MadeEngine, stepping
from tests.workbench.recording import made_recording
from workbench.cli import main
from workbench.cli.tail import Tail, event_text
from workbench.demo.outcome import ModeOutcome, Outcome
from workbench.demo.outcome_table import outcome_lines
from workbench.demo.progress_line import ProgressLine
from workbench.demo.session import describe
from workbench.demo.step_sums import StepSums
from workbench.exit_codes import ExitCode

Capture = pytest.CaptureFixture[str]
SAID = f"SIMULATED: {made.SIMULATION}"


@pytest.fixture
def simulated(make_engine: MakeEngine) -> MadeEngine:
    """An engine of which only the hello says it: its steps are not asked."""
    return make_engine("sim", config=made.SIMULATED)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A recording of one whose steps say it too."""
    items: list[Received] = [made.gpu_hello(config=made.SIMULATED, t=made.T0, seq=0)]
    items += [made.gpu_step(number, simulated=True, t=made.T0 + number * 0.1) for number in range(1, 41)]
    return made_recording.write(tmp_path / "sim.mcap", items)


@pytest.fixture
def real_recording(tmp_path: Path) -> Path:
    return made_recording.write(tmp_path / "real.mcap")


def printed(capsys: Capture, *words: str, code: int = ExitCode.OK) -> tuple[str, str]:
    """stdout and stderr."""
    assert main([*words]) == code
    return capsys.readouterr()


def found(capsys: Capture, *words: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(printed(capsys, *words)[0])
    return value


# -- of a running engine ----------------------------------------------------------------------------------------------


def test_ls(simulated: MadeEngine, make_engine: MakeEngine, capsys: Capture) -> None:
    make_engine("true")
    (_, sim, true) = printed(capsys, "ls")[0].splitlines()
    assert "SIMULATED" in sim
    assert "SIMULATED" not in true
    engines = [json.loads(line) for line in printed(capsys, "ls", "--json")[0].splitlines()]
    assert [engine["simulated"] for engine in engines] == [True, False]


def test_ls_of_an_engine_that_does_not_answer(simulated: MadeEngine, capsys: Capture) -> None:
    """A shape is none of a real model, whether the engine can be asked or not; of others nothing is known then."""
    simulated.bus.close()
    assert found(capsys, "ls", "--json")["simulated"] is None
    write_record(msgspec.structs.replace(simulated.record, model="shape:llama-3.1-8b", state="starting"))
    assert found(capsys, "ls", "--json")["simulated"] is True
    assert "shape:llama-3.1-8b SIMULATED" in printed(capsys, "ls")[0]


def test_which(simulated: MadeEngine, capsys: Capture) -> None:
    assert f"SIMULATED    {made.SIMULATION}" in printed(capsys, "which")[0]
    report = found(capsys, "which", "--json")
    assert (report["simulated"], report["simulation"]) == (True, made.SIMULATION)


def test_get(simulated: MadeEngine, capsys: Capture) -> None:
    assert printed(capsys, "get")[0].startswith(SAID)
    out, errors = printed(capsys, "get", "threshold")
    assert out == "4\n", "one knob is data"
    assert made.SIMULATION in errors
    assert found(capsys, "get", "--json")["simulated"] is True


def test_tail_says_it_first_and_on_every_line(simulated: MadeEngine, capsys: Capture) -> None:
    with stepping(simulated):
        out, errors = printed(capsys, "tail", "sim", "--steps", "3", "--topic", "step")
    assert all(line.endswith(" SIMULATED") for line in out.splitlines())
    assert f"sim is {SAID}" in errors
    with stepping(simulated):
        out, errors = printed(capsys, "tail", "sim", "--steps", "2", "--json")
    assert "SIMULATED" in errors
    assert json.loads(out.splitlines()[0])["type"] == "step"


def test_tail_of_events_that_have_no_word_for_it_themselves() -> None:
    row = RequestRow(request_id="r1", width=16, committed=40, emitted=3, correct=2, draft_lag=0)
    ended = RequestEvent(boot_id="b", step=7, t=made.T0, request_id="r1", phase="finished", accept_length=2.41)
    for event in (made.step(1), ended, RowsEvent(boot_id="b", step=8, t=made.T0, rows=[row])):
        assert event_text(event, is_simulated=True).endswith(" SIMULATED")
        assert "SIMULATED" not in event_text(event)
    assert event_text(made.hello(config=made.SIMULATED)).endswith(SAID)
    assert event_text(made.step(1, simulated=True)).endswith(" SIMULATED")


def test_tail_believes_the_newest_boot(capsys: Capture) -> None:
    tail = Tail(as_json=False, steps=None)
    tail.meet(made.hello(config=made.SIMULATED))
    tail.meet(made.hello(boot_id="c0ffee01"))
    tail.show(made.step(1))
    assert "SIMULATED" not in capsys.readouterr().out


def test_check(simulated: MadeEngine, tmp_path: Path, capsys: Capture) -> None:
    junit = tmp_path / "check.xml"
    words = ("check", "sim", "--over", "0.3s")
    out, _ = printed(capsys, *words, "-e", "gaps == 0", "--junit", str(junit))
    assert out.startswith(SAID), "with the figures, wherever they go"
    assert SAID in (ElementTree.parse(junit).getroot().findtext("testsuite/system-out") or "")
    assert printed(capsys, *words)[0].startswith(SAID)
    report = found(capsys, *words, "--json")
    assert (report["simulated"], report["metrics"]["simulated"], report["notes"][0]) == (True, 1, SAID)
    assert printed(capsys, *words, "-e", "simulated == 0", code=ExitCode.FALSE)


def test_bench(simulated: MadeEngine, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "out.json"
    with ForeignEndpoint() as endpoint:
        url = endpoint.url.removesuffix("/v1")
        write_record(msgspec.structs.replace(simulated.record, http_url=url))
        words = ("bench", "sim", "--clients", "1", "--requests", "2", "--json", str(path))
        out, errors = printed(capsys, *words)
    assert out.startswith(SAID)
    assert "output tok/s, SIMULATED" in out
    (line,) = (line for line in errors.splitlines() if "1 client: " in line)
    assert "SIMULATED" in line
    report = json.loads(path.read_text())
    assert (report["simulated"], report["simulation"]) == (True, made.SIMULATION)
    assert all(result["simulated"] for result in report["results"])


# -- of a recording ---------------------------------------------------------------------------------------------------


def test_recordings_info(recording: Path, real_recording: Path, capsys: Capture) -> None:
    assert f"SIMULATED  {made.SIMULATION}" in printed(capsys, "recordings", "info", str(recording))[0]
    report = found(capsys, "recordings", "info", str(recording), "--json")
    assert (report["simulated"], report["simulation"]) == (True, made.SIMULATION)
    assert "SIMULATED" not in printed(capsys, "recordings", "info", str(real_recording))[0]


def test_recordings_info_by_the_steps_alone(tmp_path: Path, capsys: Capture) -> None:
    items: list[Received] = [made.hello(t=made.T0, seq=0), made.step(1), made.step(2, simulated=True)]
    path = made_recording.write(tmp_path / "x.mcap", items)
    assert "acceptance or weights are not real" in printed(capsys, "recordings", "info", str(path))[0]


def test_exported_steps_have_the_flag(recording: Path, capsys: Capture) -> None:
    lines = printed(capsys, "recordings", "export", str(recording), "--format", "csv")[0].splitlines()
    at = lines[0].split(",").index("simulated")
    assert {line.split(",")[at] for line in lines[1:]} == {"true"}
    steps = printed(capsys, "recordings", "export", str(recording), "--topic", "step")[0].splitlines()
    assert all(json.loads(line)["simulated"] for line in steps)


def test_check_of_a_part_whose_hello_stands_before_it(recording: Path, capsys: Capture) -> None:
    assert printed(capsys, "check", str(recording), "--last", "1s")[0].startswith(SAID)


@pytest.mark.parametrize("screen", ["overview", "steps", "acceptance", "decisions", "knobs"])
@pytest.mark.parametrize("size", ["40x12", "80x24", "120x40"])
def test_replays_screens_as_text(recording: Path, tmp_path: Path, screen: str, size: str) -> None:
    picture = tmp_path / "x.txt"
    words = ["replay", str(recording), "--screen", screen, "--size", size, "--screenshot", str(picture)]
    assert main(words) == ExitCode.OK
    assert "SIMULATED" in picture.read_text()


def test_replays_screen_as_a_picture(recording: Path, real_recording: Path, tmp_path: Path) -> None:
    for path, says in ((recording, True), (real_recording, False)):
        picture = tmp_path / "x.svg"
        assert main(["replay", str(path), "--screenshot", str(picture)]) == ExitCode.OK
        assert ("SIMULATED" in picture.read_text()) is says


# -- the demo ---------------------------------------------------------------------------------------------------------


def outcome(**changes: Any) -> Outcome:
    load = StepSums()
    for number in range(1, 7):
        load.add(made.step(number, 8), 100_000.0)
    mode = ModeOutcome("off", load, Tally(outputs=26, tokens=1248, differences=[]), StepSums())
    return Outcome("demo", {"dtype": "float32"}, {}, {"threshold": 4}, [8], 48, [mode], **changes)


def test_the_demos_table_verdict_and_json() -> None:
    lines = outcome_lines(outcome(simulation=made.SIMULATION), 80)
    assert SAID in lines[:3]
    assert any(line.startswith("verdict (SIMULATED): ") for line in lines)
    told = outcome(simulation=made.SIMULATION).as_json()
    assert (told["simulated"], told["simulation"]) == (True, made.SIMULATION)
    assert outcome().as_json()["simulated"] is False
    assert not any("SIMULATED" in line for line in outcome_lines(outcome(), 80))


def test_the_demos_introduction_and_its_lines_as_it_goes() -> None:
    hello: HelloEvent = made.gpu_hello(config=made.SIMULATED)
    assert describe(hello).startswith(f"{SAID}\n")
    assert "SIMULATED" not in describe(made.hello())
    lines: list[str] = []
    progress = ProgressLine(lines.append, time.monotonic(), 80)
    progress.step(made.step(1, simulated=True), 1000, 3, True)
    assert "SIMULATED" in lines[0]
