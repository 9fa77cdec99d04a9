"""ls, which, get and set against a real bus."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from msgspec.structs import replace

from probes.events import KnobEvent
from probes.knob_board import KnobBoard
from probes.subscriber import Subscriber
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.conftest import MakeEngine
from tests.workbench.made_engine import MadeEngine
from workbench.cli import main
from workbench.cli.ls import uptime_text
from workbench.exit_codes import ExitCode

Capture = pytest.CaptureFixture[str]


def masked(text: str) -> str:
    """Without what differs from run to run: pid and uptime, and how wide a pid is."""
    text = re.sub("URL +PID", "URL  PID", text)
    return re.sub(r"  +\d+ +\d+s$", "  PID  UPTIME", text, flags=re.MULTILINE)


def parsed(capsys: Capture) -> dict[str, Any]:
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_ls_table(make_engine: MakeEngine, capsys: Capture) -> None:
    make_engine("alpha")
    make_engine("beta")
    assert main(["ls"]) == 0
    golden.check("cli-ls", masked(capsys.readouterr().out))


def test_ls_json_is_one_object_a_line(make_engine: MakeEngine, capsys: Capture) -> None:
    make_engine("alpha")
    make_engine("beta")
    assert main(["ls", "--json"]) == 0
    engines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [engine["name"] for engine in engines] == ["alpha", "beta"]
    assert engines[0]["knobs"]["threshold"] == 4
    assert engines[0]["http_url"] == "http://127.0.0.1:8000"
    assert engines[0]["stage"] == "idle"


def test_several_engines_need_a_name(make_engine: MakeEngine, capsys: Capture) -> None:
    make_engine("alpha")
    make_engine("beta")
    assert main(["get"]) == ExitCode.NO_ENGINE
    assert "2 engines are running, say which one: alpha, beta" in capsys.readouterr().err
    assert main(["get", "beta", "threshold"]) == 0
    assert capsys.readouterr().out == "4\n"


def test_uptime() -> None:
    assert [uptime_text(s) for s in (5, 307, 11_100, 187_200)] == ["5s", "5m07s", "3h05m", "2d04h"]


def test_get(engine: MadeEngine, capsys: Capture) -> None:
    assert main(["get"]) == 0
    golden.check("cli-get", capsys.readouterr().out)
    assert main(["get", "draft-tokens"]) == 0
    assert capsys.readouterr().out == "16\n"
    assert main(["get", "made", "spec", "--json"]) == 0
    assert parsed(capsys) == {"spec": "auto"}
    assert main(["get", "--json"]) == 0
    assert parsed(capsys)["knobs"] == made.knobs()
    assert main(["get", "made", "warp"]) == ExitCode.USAGE
    assert "unknown knob 'warp'" in capsys.readouterr().err


def test_set_says_old_new_and_the_step(engine: MadeEngine, capsys: Capture) -> None:
    for _ in range(41):
        engine.step()
    assert main(["set", "threshold=2", "spec=auto", "--why", "load test", "--who", "ann"]) == 0
    assert capsys.readouterr().out == "threshold: 4 → 2\nspec: auto (unchanged)\nin force from step 42 (epoch 1)\n"
    assert engine.board.history[-1].why == "load test"
    assert engine.board.history[-1].who == "ann"
    assert main(["set", "made", "spec=off", "--json", "--expect", "spec=auto"]) == 0
    assert parsed(capsys) == {
        "engine": "made",
        "old": {"spec": "auto"},
        "new": {"spec": "off"},
        "step": 42,
        "knob_epoch": 2,
        "revert_at": None,
        "back_to": {},
    }
    assert main(["set", "spec=off", "threshold=2"]) == 0
    assert capsys.readouterr().out == "spec: off (unchanged)\nthreshold: 2 (unchanged)\nnothing changed (epoch 2)\n"


def test_set_for_a_while(engine: MadeEngine, capsys: Capture) -> None:
    assert main(["set", "threshold=2", "spec=auto", "--for", "15m", "--why", "load test", "--who", "ann"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "spec: auto (unchanged)",
        "in force from step 1 (epoch 1); back to threshold 4 in 15 min",
    ]
    assert main(["get"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("threshold"))
    assert re.match(r"threshold +2 \(back to 4 in 15 min\) +speculate", line)
    assert main(["get", "threshold"]) == 0
    assert capsys.readouterr().out == "2\n", "one knob is data"
    assert main(["get", "--json"]) == 0
    (revert,) = parsed(capsys)["reverts"]
    assert (revert["knob"], revert["back_to"], revert["who"], revert["why"]) == ("threshold", 4, "ann", "load test")
    assert 870 < revert["in_s"] <= 900
    assert main(["set", "threshold=2", "--for", "1h30m"]) == 0
    assert capsys.readouterr().out.endswith("nothing changed (epoch 1); back to threshold 4 in 1 h 30 min\n")
    assert main(["set", "threshold=2", "--for", "2h", "--json"]) == 0
    assert parsed(capsys)["back_to"] == {"threshold": 4}


def test_set_for_a_while_with_nothing_to_take_back(engine: MadeEngine, capsys: Capture) -> None:
    assert main(["set", "threshold=4", "--for", "15m"]) == 0
    assert capsys.readouterr().out == "threshold: 4 (unchanged)\nnothing changed (epoch 0), so nothing goes back\n"


def test_a_change_for_a_while_goes_back_and_says_so_on_the_bus(engine: MadeEngine) -> None:
    with Subscriber(engine.record, ("knob",)) as subscriber:
        assert main(["set", "threshold=2", "--for", "1s", "--who", "ann"]) == 0
        events: list[KnobEvent] = []
        deadline = time.monotonic() + 30.0
        while len(events) < 2:
            assert time.monotonic() < deadline
            events += [item for item in subscriber.poll(0.2) if isinstance(item, KnobEvent)]
    assert events[0].revert_at is not None
    assert (events[1].old, events[1].new) == ({"threshold": 2}, {"threshold": 4})
    assert (events[1].who, events[1].why) == ("engine", "revert, 1 s after ann set threshold to 2")
    assert events[1].t >= events[0].revert_at
    assert engine.board.as_dict() == made.knobs()


@pytest.mark.parametrize("time_", ["0s", "8d", "soon", "15 m", "nan"])
def test_times_that_no_change_can_last(time_: str, capsys: Capture) -> None:
    assert main(["set", "threshold=2", "--for", time_]) == ExitCode.USAGE
    assert "--for" in capsys.readouterr().err


def test_an_engine_that_knows_no_end_of_a_change(
    engine: MadeEngine, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """An older engine skips the field and changes the knob for good: that must not pass for a timed change."""
    apply, hello = KnobBoard.apply, MadeEngine.hello
    monkeypatch.setattr(
        KnobBoard, "apply", lambda board, request, step: apply(board, replace(request, revert_after_s=None), step)
    )
    monkeypatch.setattr(MadeEngine, "hello", lambda self: replace(hello(self), t=0.0))
    engine.bus._hello = engine.hello  # the bus was given the method that was
    assert main(["set", "threshold=2", "--for", "15m"]) == ExitCode.FALSE
    captured = capsys.readouterr()
    assert "threshold: 4 → 2" in captured.out
    assert "knows no --for: the change stays" in captured.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["warp=9"], "unknown_knob): unknown knob 'warp'; the knobs are spec, policy"),
        (["threshold=many"], "bad_value): knob threshold: got 'many', expected a whole number from 0 to 4096"),
        (["topk=1"], "topk=1 is a chain, so draft_tokens must be steps + 1 = 3"),
        (["threshold=2", "draft_tokens=99"], "draft_tokens=99"),
        (["spec=off", "--expect", "spec=on"], "conflict): spec is 'auto', not 'on'"),
    ],
)
def test_refusal_changes_nothing_and_says_why(
    engine: MadeEngine, words: list[str], message: str, capsys: Capture
) -> None:
    assert main(["set", *words]) == ExitCode.REFUSED
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("specwb: made refused (")
    assert message in captured.err
    assert engine.board.as_dict() == made.knobs()


def test_refusal_as_json(engine: MadeEngine, capsys: Capture) -> None:
    assert main(["set", "spec=off", "--expect", "spec=on", "--json"]) == ExitCode.REFUSED
    refusal = parsed(capsys)
    assert refusal["refused"] == "conflict"
    assert refusal["found"] == {"spec": "auto"}


def test_engine_that_does_not_answer_is_unreachable(engine: MadeEngine, capsys: Capture) -> None:
    engine.bus.close()
    assert main(["get", "--timeout", "0.2"]) == ExitCode.UNREACHABLE
    assert "no answer from" in capsys.readouterr().err
    assert main(["ls"]) == 0, "it is listed all the same"
    assert "silent" in capsys.readouterr().out


def test_which(engine: MadeEngine, capsys: Capture) -> None:
    assert main(["which"]) == 0
    golden.check("cli-which", capsys.readouterr().out)
    assert main(["which", "--json"]) == 0
    assert parsed(capsys)["which"]["attention"]["defined"] == "engine/attention/dense.py:12"


@pytest.mark.parametrize(
    ("hello", "words"),
    [
        ({"draft": None}, "no draft loaded: cannot speculate"),
        ({"knobs": made.knobs(spec="off")}, "draft loaded, speculation off (spec=off)"),
        ({"knobs": made.knobs(threshold=0)}, "draft loaded, speculation off (threshold=0"),
        ({"knobs": made.knobs(spec="on")}, "on for every decode step (spec=on)"),
        ({"simulated": True}, "SIMULATED"),
    ],
)
def test_which_says_whether_it_speculates(
    make_engine: MakeEngine, hello: dict[str, Any], words: str, capsys: Capture
) -> None:
    """B66."""
    make_engine(**hello)
    assert main(["which"]) == 0
    assert words in capsys.readouterr().out
