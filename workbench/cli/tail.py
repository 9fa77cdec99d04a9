"""``specwb tail``: an engine's events as they happen, for people or one JSON object a line."""

from __future__ import annotations

import time
from typing import Any

import click

from probes.discovery import EngineRecord
from probes.events import (
    TOPICS,
    AlertEvent,
    DropEvent,
    HeartbeatEvent,
    HelloEvent,
    KnobEvent,
    RequestEvent,
    RowsEvent,
    StepEvent,
)
from probes.simulation import WORD, simulated_text, simulation_of
from probes.subscriber import Gap, Malformed, Received, Restart, Subscriber
from workbench.cell_text import clean
from workbench.cli.candidates import engines
from workbench.cli.connect import engine_named, probe_errors
from workbench.console import fail, print_json, print_line, say
from workbench.exit_codes import ExitCode
from workbench.step_words import gpu_text, knob_text, reason_text, slots_text, took_text, widths_text
from workbench.time_text import clock_text

DEFAULT_TOPICS = ("step", "knob", "alert", "drop")
POLL_S = 0.5


def step_text(step: StepEvent) -> str:
    """A step in one line; what it did not do is left out."""
    parts = [f"step {step.step}", f"{step.mode.upper():<7}", f"reqs {step.requests}"]
    if step.prefill_tokens:
        parts.append(f"prompt {step.prefill_requests}:{step.prefill_tokens}")
    parts += [f"width {widths_text(step)}", f"slots {slots_text(step)}", f"emit {step.emitted}"]
    parts.append(f"acc {step.accept_length:.2f}" if step.accept_length is not None else "acc n/a")
    parts += [f"{took_text(step)} ms", gpu_text(step), f"queue {step.queue}", reason_text(step)]
    return "  ".join(part for part in parts if part)


def event_text(event: Any, is_simulated: bool = False) -> str:
    """Any event in one line; ``is_simulated``: the engine is, whatever the event itself says."""
    match event:
        case StepEvent():
            text = step_text(event)
        case KnobEvent():
            by = f" by {event.who}" if event.who else ""
            why = f" ({event.why})" if event.why else ""
            text = f"knob {knob_text(event)} from step {event.step}{by}{why}"
        case AlertEvent():
            text = f"alert {event.level.upper()} [{event.code}] {event.message}"
        case DropEvent():
            text = f"drop the engine dropped {event.count} {event.topic} events before sending them"
        case RequestEvent():
            accept = f"  accept {event.accept_length:.2f}" if event.accept_length is not None else ""
            end = f"  {event.finish_reason or event.error or ''}".rstrip()
            text = (
                f"request {event.request_id} {event.phase}  prompt {event.prompt_tokens}  "
                f"output {event.output_tokens}{accept}{end}"
            )
        case HeartbeatEvent():
            text = f"heartbeat {event.stage} for {event.stage_s:.1f} s  step {event.step}"
        case HelloEvent():
            is_simulated = False  # it says so itself, and what
            what = simulated_text(simulation_of(event))
            text = f"hello {event.name}  boot {event.boot_id}  epoch {event.knob_epoch}" + (f"  {what}" if what else "")
        case RowsEvent():
            rows = ", ".join(f"{row.request_id}:{row.width}w+{row.emitted}" for row in event.rows)
            text = f"rows step {event.step}  {rows}"
        case _:
            text = str(event)
    if is_simulated or (isinstance(event, StepEvent) and event.simulated):
        text += f" {WORD}"
    return clean(f"{clock_text(event.t, ms=True)}  {text}")  # a reason, say, is whatever its author typed


def incident(item: Gap | Restart | Malformed) -> dict[str, Any]:
    """What the bus itself has to say, as ``--json`` prints it between the events."""
    match item:
        case Gap():
            return {
                "type": "gap",
                "topic": item.topic,
                "first": item.first,
                "last": item.last,
                "recovered": item.recovered,
            }
        case Restart():
            return {"type": "restart", "old_boot": item.old_boot, "new_boot": item.new_boot}
        case Malformed():
            return {"type": "malformed", "topic": item.topic, "seq": item.seq, "reason": item.reason}


def incident_text(item: Gap | Restart | Malformed) -> str:
    """The same for a person."""
    match item:
        case Gap():
            what = "came late" if item.recovered else "were lost"
            return f"{item.count} {item.topic} events {what} (numbers {item.first} to {item.last})"
        case Restart():
            return f"the engine restarted: boot {item.old_boot} → {item.new_boot}"
        case Malformed():
            return f"a message was unreadable and skipped: {item.reason}"


class Tail:
    """Prints what comes, and knows when it has printed enough."""

    def __init__(self, as_json: bool, steps: int | None) -> None:
        self._as_json = as_json
        self._left = steps
        self._is_simulated = False

    def meet(self, hello: HelloEvent) -> None:
        """Learn who the engine is: the lines of one whose figures are not real say so, each of them."""
        what = simulation_of(hello)
        if what and not self._is_simulated:
            say(f"{hello.name} is {simulated_text(what)}")
        self._is_simulated = bool(what)

    @property
    def is_done(self) -> bool:
        return self._left is not None and self._left <= 0

    def show(self, item: Received) -> None:
        """Print one item; nothing after the last step that was asked for."""
        if self.is_done:
            return
        if isinstance(item, Gap | Restart | Malformed):
            if self._as_json:
                print_json(incident(item))
            else:
                say(incident_text(item))
            return
        if self._as_json:
            print_json(item)
        else:
            print_line(event_text(item, self._is_simulated))
        if isinstance(item, StepEvent) and self._left is not None:
            self._left -= 1


def follow(record: EngineRecord, topics: tuple[str, ...], tail: Tail, timeout: float | None) -> None:
    """Print until done.

    Raises:
        CommandError: nothing came for ``timeout`` seconds, or the engine's process has ended.
    """
    with Subscriber(record, topics, who=f"tail {record.name}") as subscriber:
        say(f"following {record.name} (boot {subscriber.boot_id}): {', '.join(topics)}; Ctrl-C ends it")
        tail.meet(subscriber.hello)
        last = time.monotonic()
        while not tail.is_done:
            received = subscriber.poll(POLL_S)
            tail.meet(subscriber.hello)  # another one after a restart
            for item in received:
                tail.show(item)
            now = time.monotonic()
            if received:
                last = now
            elif timeout is not None and now - last >= timeout:
                fail(ExitCode.UNREACHABLE, f"nothing came from {record.name} for {timeout:g} s")
            elif subscriber.is_stale and not record.is_live:
                fail(ExitCode.UNREACHABLE, f"{record.name} is gone: process {record.pid} has ended")


@click.command("tail")
@click.argument("name", required=False, shell_complete=engines)
@click.option("--topic", "topics", multiple=True, type=click.Choice(list(TOPICS)), help="Only these. Repeatable.")
@click.option("--steps", type=click.IntRange(min=1), help="End after so many steps.")
@click.option("--timeout", type=click.FloatRange(min=0), help="End with code 5 when nothing comes for so many seconds.")
@click.option("--json", "as_json", is_flag=True, help="One object a line, flushed at once; gaps are objects too.")
def command(name: str | None, topics: tuple[str, ...], steps: int | None, timeout: float | None, as_json: bool) -> None:
    """Print an engine's events as they happen: steps, knob changes, alerts, drops.

    acc is the accept length, 1 + correct drafts / verifies: it includes the bonus token; n/a when nothing was verified.

    \b
    Example:
      specwb tail demo
      specwb tail demo --json --steps 100 | jq .accept_length
    """
    chosen = topics or DEFAULT_TOPICS
    if steps is not None and "step" not in chosen:
        raise click.UsageError("--steps counts step events; add --topic step")
    record = engine_named(name)
    with probe_errors():
        follow(record, chosen, Tail(as_json, steps), timeout)
