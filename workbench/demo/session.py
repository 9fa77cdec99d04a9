"""One demo from the start of its engine to the end of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from probes.control import ControlClient
from probes.errors import ProbeError
from probes.events import HelloEvent
from probes.subscriber import Subscriber
from workbench.console import CommandError, fail
from workbench.console import say as narrate
from workbench.demo.demonstration import Demonstration
from probes.ci.openai_client import OpenAiClient, RequestFailed
from workbench.demo.outcome import Outcome
from workbench.demo.served_engine import ServedEngine
from workbench.exit_codes import ExitCode

TOPICS = ("step", "alert", "drop")
CONTROL_S = 30.0
"""Longest wait for the engine to answer a control request: it answers between steps."""


def demonstrate(
    serve_options: Sequence[str],
    tokens: int,
    say: Callable[[str], None],
    *,
    keep: bool = False,
    columns: int | None = None,
) -> Outcome:
    """Start an engine under a name of its own, run the demonstration on it, end it (unless ``keep``).

    Raises:
        CommandError: the engine could not start, could not go on, or does not answer; with its last lines.
    """
    name = f"demo-{os.getpid()}"
    with ServedEngine(name, serve_options, keep=keep) as engine, last_words(engine):
        say(f"starting an engine of its own: {engine.command}")
        record = engine.wait_ready(say)
        assert record.http_url is not None
        client = OpenAiClient(record.http_url)
        for warning in client.health().get("warnings", []):
            say(f"warning: {warning}")
        with (
            ControlClient(record, timeout=CONTROL_S, who="specwb demo") as control,
            Subscriber(record, TOPICS, who="specwb demo", timeout=CONTROL_S) as subscriber,
        ):
            say(describe(subscriber.hello))
            if sys.stdout.isatty():
                say(f"to watch it on a screen: specwb attach {name}   (in another terminal)")
            check_alive = partial(engine.check_alive, ExitCode.UNREACHABLE)
            demonstration = Demonstration(record, control, subscriber, client, tokens, say, check_alive, columns)
            outcome = demonstration.run()
        if keep:
            say(
                f"the engine goes on at {record.http_url}/v1; watch it: specwb attach {name}; "
                f"end it: kill {engine.process.pid}; its log: {engine.log}"
            )
    return outcome


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
    """What is compared, in two lines."""
    model, draft, knobs = hello.model, hello.draft or {}, hello.knobs
    return (
        f"model {model.get('name')}, {model.get('dtype')} on {model.get('device')}, {model.get('threads')} threads; "
        f"draft {draft.get('name', 'none')} ({draft.get('algorithm', '-')})\n"
        f"tree topk {knobs['topk']}, steps {knobs['steps']}, {knobs['draft_tokens']} draft tokens; "
        f"auto speculates while a step has at most {knobs['threshold']} decode requests (threshold)"
    )
