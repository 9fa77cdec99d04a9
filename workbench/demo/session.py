"""One demo from the start of its engine to the end of it: on a screen, or line by line."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from probes.ci.openai_client import OpenAiClient, RequestFailed
from probes.control import ControlClient
from probes.discovery import EngineRecord
from probes.errors import ProbeError
from probes.events import HelloEvent
from probes.simulation import simulated_text, simulation_of
from probes.subscriber import Subscriber
from workbench.console import CommandError, fail
from workbench.console import say as narrate
from workbench.demo.demonstration import WHO, Demonstration
from workbench.demo.narrator import LineNarrator, Narrator
from workbench.demo.outcome import Outcome
from workbench.demo.served_engine import ServedEngine
from workbench.exit_codes import ExitCode
from workbench.own_command import own_command

TOPICS = ("step", "knob", "alert", "drop")
CONTROL_S = 30.0
"""Longest wait for the engine to answer a control request: it answers between steps."""

Say = Callable[[str], None]


def demonstrate(
    serve_options: Sequence[str], tokens: int, say: Say, *, keep: bool = False, columns: int | None = None
) -> Outcome:
    """Start an engine under a name of its own, run the demonstration on it line by line, end it (unless ``keep``).

    Raises:
        CommandError: the engine could not start, could not go on, or does not answer; with its last lines.
    """
    with ready_engine(serve_options, say, keep=keep) as (engine, record):
        if sys.stdout.isatty():
            say(f"to watch it on a screen: `{own_command('attach', engine.name)}` in another terminal")
        check_alive = partial(engine.check_alive, ExitCode.UNREACHABLE)
        with demonstration_on(record, tokens, LineNarrator(say), check_alive, columns) as demonstration:
            demonstration.outcome.how_to_set = engine.how_to_set
            return demonstration.run()


@contextmanager
def ready_engine(
    serve_options: Sequence[str], say: Say, *, keep: bool = False
) -> Iterator[tuple[ServedEngine, EngineRecord]]:
    """An engine of the demo's own that serves, and has been introduced; ended afterwards, unless ``keep``.

    Raises:
        CommandError: whatever went wrong until its end, with its last lines.
    """
    with ServedEngine(f"demo-{os.getpid()}", serve_options, keep=keep) as engine, last_words(engine):
        say(f"starting an engine of its own: `{engine.command}`")
        record = engine.wait_ready(say)
        assert record.http_url is not None
        for warning in OpenAiClient(record.http_url).health().get("warnings", []):
            say(f"warning: {warning}")
        with ControlClient(record, timeout=CONTROL_S, who=WHO) as control:
            say(describe(control.hello()))
        yield engine, record
        if keep:
            say(
                f"the engine goes on at {record.http_url}/v1; watch it: `{own_command('attach', engine.name)}`; "
                f"end it: `kill {engine.process.pid}`; its log: {engine.log}"
            )


@contextmanager
def demonstration_on(
    record: EngineRecord, tokens: int, narrator: Narrator, check_alive: Callable[[], None], columns: int | None = None
) -> Iterator[Demonstration]:
    """A demonstration with connections of its own; to be entered in the thread that runs it."""
    assert record.http_url is not None
    with (
        ControlClient(record, timeout=CONTROL_S, who=WHO) as control,
        Subscriber(record, TOPICS, who=WHO, timeout=CONTROL_S) as subscriber,
    ):
        client = OpenAiClient(record.http_url)
        yield Demonstration(record, control, subscriber, client, tokens, narrator, check_alive, columns)


@contextmanager
def last_words(engine: ServedEngine) -> Iterator[None]:
    """Add what the engine said last to whatever ends the demo early."""
    try:
        yield
    except CommandError as error:
        fail(error.code, f"{error.message}; the engine last said:\n{engine.last_lines()}")
    except (ProbeError, RequestFailed) as error:
        fail(ExitCode.UNREACHABLE, f"{error}; the engine last said:\n{engine.last_lines()}")
    except KeyboardInterrupt:
        narrate("interrupted: ending the engine")
        raise


def describe(hello: HelloEvent) -> str:
    """What is compared, in two lines; before them, what of it is not real."""
    model, draft, knobs = hello.model, hello.draft or {}, hello.knobs
    what = simulated_text(simulation_of(hello))
    return (f"{what}\n" if what else "") + (
        f"model {model.get('name')}, {model.get('dtype')} on {model.get('device')}, {model.get('threads')} threads; "
        f"draft {draft.get('name', 'none')} ({draft.get('algorithm', '-')})\n"
        f"tree topk {knobs['topk']}, steps {knobs['steps']}, {knobs['draft_tokens']} draft tokens; "
        f"auto speculates while a step has at most {knobs['threshold']} decode requests (threshold)"
    )
