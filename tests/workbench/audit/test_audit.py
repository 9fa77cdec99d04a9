"""``specwb audit``: clean on a real engine, and every planted lie is found and named."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from probes.control import ControlClient
from probes.discovery import find_record
from probes.events import KnobEvent, RequestEvent, RowsEvent, StepEvent
from probes.subscriber import Gap, Received, Restart
from tests.engine.server.server_under_test import ServerUnderTest
from tests.workbench.served import served
from workbench.audit.audit_text import audit_lines, covered, report
from workbench.audit.difference import Difference
from workbench.audit.evidence import Evidence, Served
from workbench.audit.session import Audited, AuditSession, compare
from workbench.cli import main
from workbench.exit_codes import ExitCode
from workbench.recording.reader import Recording

T = TypeVar("T", StepEvent, RequestEvent, RowsEvent, KnobEvent)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    yield from served(tmp_path_factory.mktemp("a"))


@pytest.fixture(autouse=True)
def in_its_runtime_dir(server: ServerUnderTest, runtime_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(server.runtime))


_audited: list[Audited] = []


@pytest.fixture
def audited(in_its_runtime_dir: None, server: ServerUnderTest) -> Audited:
    """One audit of a real engine, shared by all tests of this file."""
    if not _audited:
        record = find_record(server.name)
        _audited.append(asyncio.run(AuditSession(record, 40, 1, None, lambda text: None).run()))
    return _audited[0]


@pytest.fixture
def evidence(audited: Audited) -> Evidence:
    """A copy to plant lies in."""
    given = audited.evidence
    return replace(
        given,
        served=list(given.served),
        bus=list(given.bus),
        recording=list(given.recording or []),
        screen=copy.deepcopy(given.screen),
        switches=list(given.switches),
    )


def test_a_real_engine_is_honest(audited: Audited) -> None:
    """B03, B04, B84: over stops, aborts, waiting requests and switches, all four witnesses say the same."""
    assert [difference.text for difference in audited.findings.differences] == []
    found = covered(audited)
    assert found["requests"] == 40
    assert found["aborted"] > 0
    assert found["most_waiting"] > 0
    assert found["stopped"] > 0
    assert found["switches"] > 0
    assert {"spec", "plain", "prefill"} <= set(found["steps"])
    compared = audited.findings.compared
    for pair in (
        "client / bus request events",
        "bus rows / bus request events",
        "bus / recording",
        "screen / bus steps",
    ):
        assert compared[pair] > 0


def test_ended_streams_are_never_aborted_and_left_ones_once(audited: Audited) -> None:
    """B72: no abort for requests that finished, exactly one for each that was left in mid answer."""
    requests = audited.evidence.requests()
    phases = {request_id: [event.phase for event in events] for request_id, events in requests.items()}
    for served_one in audited.evidence.served:
        if served_one.answer.is_complete:
            for choice in range(served_one.planned.choices):
                assert phases[served_one.engine_id(choice)].count("aborted") == 0
    ends = [found.count("finished") + found.count("aborted") for found in phases.values()]
    assert set(ends) == {1}


def test_what_was_delivered_to_a_client_that_left_is_at_most_what_was_emitted(audited: Audited) -> None:
    left = audited.findings.left
    assert len(left) > 4
    assert all(0 < one.delivered <= one.emitted for one in left)
    assert any(one.was_aborted for one in left)


@dataclass(frozen=True)
class Lie:
    """What is planted, and what the audit has to say about it."""

    plant: Callable[[Evidence], None]
    where: str
    what: str
    sources: tuple[str, str]


def change(items: list[Received], kind: type[T], holds: Callable[[T], bool], **fields: Any) -> T:
    """Alter the last event of a kind for which ``holds`` is true; the event as it was."""
    for index in range(len(items) - 1, -1, -1):
        item = items[index]
        if isinstance(item, kind) and holds(item):
            new = {name: made(item) if callable(made) else made for name, made in fields.items()}
            items[index] = msgspec.structs.replace(item, **new)
            return item
    raise AssertionError(f"no such {kind.__name__}")


def step_emits_one_more(evidence: Evidence) -> None:
    change(evidence.bus, StepEvent, lambda step: step.requests > 1, emitted=lambda step: step.emitted + 1)


def step_hides_its_cut(evidence: Evidence) -> None:
    change(evidence.bus, StepEvent, lambda step: step.requests > 1, discarded=lambda step: step.discarded + 2)


def step_is_gone(evidence: Evidence) -> None:
    index = next(i for i, item in enumerate(evidence.bus) if isinstance(item, StepEvent) and item.requests > 1)
    del evidence.bus[index]


def step_comes_twice(evidence: Evidence) -> None:
    evidence.bus.append(next(item for item in evidence.bus if isinstance(item, StepEvent)))


def rows_are_gone(evidence: Evidence) -> None:
    del evidence.bus[next(i for i, item in enumerate(evidence.bus) if isinstance(item, RowsEvent))]


def row_emits_less(evidence: Evidence) -> None:
    change(
        evidence.bus,
        RowsEvent,
        lambda event: len(event.rows) > 1,
        rows=lambda event: [msgspec.structs.replace(event.rows[0], emitted=0), *event.rows[1:]],
    )


def request_ends_with_more(evidence: Evidence) -> None:
    change(
        evidence.bus,
        RequestEvent,
        lambda event: event.phase == "finished",
        output_tokens=lambda event: event.output_tokens + 1,
    )


def finished_request_is_aborted_too(evidence: Evidence) -> None:
    event = next(item for item in evidence.bus if isinstance(item, RequestEvent) and item.phase == "finished")
    evidence.bus.append(msgspec.structs.replace(event, phase="aborted", seq=10**6))


def request_never_ends(evidence: Evidence) -> None:
    index = next(
        i for i, item in enumerate(evidence.bus) if isinstance(item, RequestEvent) and item.phase == "finished"
    )
    del evidence.bus[index]


def stranger_is_served(evidence: Evidence) -> None:
    event = next(item for item in evidence.bus if isinstance(item, RequestEvent))
    for number in range(9):
        for phase in ("arrived", "aborted"):
            evidence.bus.append(msgspec.structs.replace(event, request_id=f"stranger-{number}", phase=phase))


def verifies_under_off(evidence: Evidence) -> None:
    off = next(event for event in evidence.knobs() if event.new.get("spec") == "off")
    change(
        evidence.bus,
        StepEvent,
        lambda step: step.knob_epoch == off.knob_epoch and step.requests > 0,
        verified=1,
        accept_length=1.0,
    )


def accept_length_is_flattered(evidence: Evidence) -> None:
    change(evidence.bus, StepEvent, lambda step: step.verified > 0, accept_length=lambda step: step.accept_length + 0.5)


def correct_drafts_leave_a_depth_out(evidence: Evidence) -> None:
    change(evidence.bus, StepEvent, lambda step: step.verified > 0, correct_by_position=lambda step: [99])


def slots_are_miscounted(evidence: Evidence) -> None:
    change(evidence.bus, StepEvent, lambda step: step.requests > 0, slots_written=lambda step: step.slots_written - 1)


def slots_leak(evidence: Evidence) -> None:
    change(
        evidence.bus,
        StepEvent,
        lambda step: step.step == evidence.last_step,
        kv=lambda step: {name: msgspec.structs.replace(use, used=3) for name, use in step.kv.items()},
    )


def switch_is_not_on_the_bus(evidence: Evidence) -> None:
    del evidence.bus[next(i for i, item in enumerate(evidence.bus) if isinstance(item, KnobEvent))]


def events_are_lost(evidence: Evidence) -> None:
    evidence.bus.append(Gap("step", 5, 9, recovered=False))


def client_gets_one_token_less(evidence: Evidence) -> None:
    tamper(evidence, lambda answer: answer.sequences[0].token_ids.pop())


def usage_says_one_more(evidence: Evidence) -> None:
    def alter(answer: Any) -> None:
        answer.usage = msgspec.structs.replace(answer.usage, completion_tokens=answer.usage.completion_tokens + 1)

    tamper(evidence, alter)


def usage_flatters_the_draft(evidence: Evidence) -> None:
    def alter(answer: Any) -> None:
        extra = {**answer.usage.specwb, "correct_drafts": answer.usage.specwb["correct_drafts"] + 4}
        answer.usage = msgspec.structs.replace(answer.usage, specwb=extra)

    tamper(evidence, alter)


def tamper(evidence: Evidence, alter: Callable[[Any], object]) -> None:
    """Change what the client of the first complete stream saw."""
    index = next(i for i, one in enumerate(evidence.served) if one.planned.kind == "reference")
    one = evidence.served[index]
    answer = copy.deepcopy(one.answer)
    alter(answer)
    evidence.served[index] = Served(one.planned, answer)


def recording_has_another_number(evidence: Evidence) -> None:
    assert evidence.recording is not None
    change(evidence.recording, StepEvent, lambda step: step.requests > 0, emitted=77)


def recording_left_a_step_out(evidence: Evidence) -> None:
    assert evidence.recording is not None
    step_is_gone(replace(evidence, bus=evidence.recording))


def recording_has_lost_some(evidence: Evidence) -> None:
    evidence.recording_lost = 3


def screen_shows_another_number(evidence: Evidence) -> None:
    step = next(s for s in evidence.steps() if s.requests > 1)
    entries = evidence.screen.timeline._entries
    index = next(
        i for i, e in enumerate(entries) if isinstance(e, bytes) and msgspec.msgpack.decode(e)["step"] == step.step
    )
    entries[index] = msgspec.msgpack.encode(msgspec.structs.replace(step, emitted=step.emitted + 5))


def screen_leaves_a_row_out(evidence: Evidence) -> None:
    del evidence.screen.timeline._entries[-1]


def screen_sums_an_epoch_wrongly(evidence: Evidence) -> None:
    epoch = next(e for e in evidence.screen.epochs.epochs if e.first_step and e.first_step > evidence.first_step)
    epoch.emitted -= 1


def screen_shows_an_old_accept_length(evidence: Evidence) -> None:
    evidence.screen._accept._last = 7.77


LIES = {
    lie.plant.__name__: lie
    for lie in (
        Lie(step_emits_one_more, "step ", "tokens emitted", ("bus steps", "bus rows")),
        Lie(step_hides_its_cut, "step ", "tokens emitted and discarded", ("bus steps", "its own sum")),
        Lie(step_is_gone, "step ", "step events", ("bus steps", "one a step")),
        Lie(step_comes_twice, "step ", "step events", ("bus steps", "one a step")),
        Lie(rows_are_gone, "step ", "decode requests", ("bus steps", "bus rows")),
        Lie(row_emits_less, "request ", "output tokens", ("bus rows", "bus request events")),
        Lie(request_ends_with_more, "request ", "output tokens", ("client", "bus request events")),
        Lie(
            finished_request_is_aborted_too,
            "request ",
            "ends (finished or aborted)",
            ("bus request events", "a request's life"),
        ),
        Lie(request_never_ends, "request ", "end of it", ("client", "bus request events")),
        Lie(stranger_is_served, "request stranger-8", "whose it is", ("client", "bus request events")),
        Lie(verifies_under_off, "step ", "verified under spec=off", ("bus steps", "bus knob events")),
        Lie(accept_length_is_flattered, "step ", "accept length", ("bus steps", "its own sum")),
        Lie(correct_drafts_leave_a_depth_out, "step ", "correct drafts", ("bus steps", "its own sum")),
        Lie(slots_are_miscounted, "step ", "slots written", ("bus steps", "slots reserved")),
        Lie(slots_leak, "the end", "target KV slots in use", ("bus steps", "nothing running")),
        Lie(switch_is_not_on_the_bus, "knob change ", "step and values", ("control's answer", "bus knob events")),
        Lie(events_are_lost, "the bus", "step events lost", ("bus", "none expected")),
        Lie(client_gets_one_token_less, "request ", "output tokens", ("client", "usage")),
        Lie(usage_says_one_more, "request ", "output tokens", ("usage", "bus request events")),
        Lie(usage_flatters_the_draft, "request ", "correct drafts", ("usage", "bus request events")),
        Lie(recording_has_another_number, "step event ", "emitted", ("bus", "recording")),
        Lie(recording_left_a_step_out, "step event ", "the event", ("bus", "recording")),
        Lie(recording_has_lost_some, "the recording", "events lost", ("recording", "none expected")),
        Lie(screen_shows_another_number, "step ", "column emit", ("screen", "bus steps")),
        Lie(screen_leaves_a_row_out, "step ", "rows", ("screen", "bus steps")),
        Lie(screen_sums_an_epoch_wrongly, "knob epoch ", "emitted", ("screen", "bus steps")),
        Lie(screen_shows_an_old_accept_length, "status line", "newest accept length", ("screen", "bus steps")),
    )
}


@pytest.mark.parametrize("name", LIES)
def test_a_planted_lie_is_named(name: str, evidence: Evidence) -> None:
    lie = LIES[name]
    lie.plant(evidence)
    findings = compare(evidence)
    found = [one for one in findings.differences if names(one) == (lie.what, lie.sources)]
    assert found, [one.text for one in findings.differences]
    assert any(one.where.startswith(lie.where) for one in found)
    one = found[0]
    assert one.one[1] != one.other[1]
    text = "\n".join(audit_lines(Audited(evidence, findings)))
    assert f"DIFFERENCE  {one.text}" in text
    assert "NOT CLEAN" in text
    told = report(Audited(evidence, findings), "t")
    assert told["clean"] is False
    assert one.as_json() in told["differences"]


def names(difference: Difference) -> tuple[str, tuple[str, str]]:
    return difference.what, (difference.one[0], difference.other[0])


def test_the_command_keeps_its_recording_and_gives_the_knobs_back(
    server: ServerUnderTest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ControlClient(find_record(server.name)) as control:
        before = control.state().knobs
        path = tmp_path / "kept.mcap"
        assert main(["audit", "--requests", "12", "--seed", "9", "--recording", str(path), "--json"]) == ExitCode.OK
        assert control.state().knobs == before
    told = json.loads(capsys.readouterr().out)
    assert told["clean"] is True
    assert told["covered"]["requests"] == 12
    with Recording.open(path) as recording:
        assert recording.info.is_finished


def test_a_recording_that_exists_is_not_overwritten(
    server: ServerUnderTest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kept.mcap"
    path.write_bytes(b"mine")
    assert main(["audit", "--requests", "8", "--recording", str(path)]) == ExitCode.USAGE
    assert "kept.mcap" in capsys.readouterr().err
    assert path.read_bytes() == b"mine"


def test_a_simulated_engine_is_named_so(evidence: Evidence) -> None:
    assert report(Audited(evidence, compare(evidence)), "t")["simulated"] is False
    hello = evidence.screen.hello
    assert hello is not None
    evidence.screen.hello = msgspec.structs.replace(hello, config={**hello.config, "simulate_accept": 2.6})
    audited = Audited(evidence, compare(evidence))
    assert "SIMULATED: accept length set to 2.6" in audit_lines(audited)
    assert report(audited, "t")["simulation"] == "accept length set to 2.6"


def test_a_restart_in_the_middle_is_said_before_the_differences_that_come_from_it(evidence: Evidence) -> None:
    evidence.bus.insert(len(evidence.bus) // 2, Restart(old_boot="aaa", new_boot="bbb"))
    lines = audit_lines(Audited(evidence, compare(evidence)))
    [said] = [number for number, line in enumerate(lines) if line.startswith("the engine was restarted meanwhile")]
    assert "(boot aaa -> bbb)" in lines[said]
    assert said < next(number for number, line in enumerate(lines) if line.startswith("DIFFERENCE"))
