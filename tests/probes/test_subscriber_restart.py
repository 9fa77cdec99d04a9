"""An engine that restarts, dies or freezes under a subscriber: told from a gap, found again, called stale."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from probes.clock import FakeClock
from probes.endpoints import Endpoints
from probes.events import StepEvent
from probes.subscriber import Gap, Received, Restart, Subscriber
from tests.probes.fake_engine import poll_until, running, steps_in


def has_step(seq: int) -> Callable[[list[Received]], bool]:
    return lambda items: seq in steps_in(items[-1:]) or seq in steps_in(items)


def test_restart_is_told_from_a_gap(endpoints: Endpoints) -> None:
    """B89: numbers that begin again under another boot id are a restart, and the new boot's first events come too."""
    with running(endpoints, "boot-1") as engine:
        subscriber = Subscriber(endpoints, ["step"])
        with subscriber:
            engine.publish_steps(30)
            items = poll_until(subscriber, has_step(30))
            engine.bus.close()
            with running(endpoints, "boot-2") as second:
                second.publish_steps(3)
                items += poll_until(subscriber, lambda items: len(steps_in(items)) == 3)
                assert subscriber.boot_id == "boot-2"
                assert subscriber.hello.boot_id == "boot-2"
    after = items[30:]
    assert after[0] == Restart("boot-1", "boot-2")
    assert steps_in(after) == [1, 2, 3]
    assert not [item for item in after if isinstance(item, Gap)]


def has_step_of(boot_id: str) -> Callable[[list[Received]], bool]:
    return lambda items: any(isinstance(item, StepEvent) and item.boot_id == boot_id for item in items)


def start_process(endpoints: Endpoints, boot_id: str) -> subprocess.Popen[str]:
    directory = str(Path(endpoints.events.removeprefix("ipc://")).parent)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.probes.fake_engine", directory, boot_id], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end_process(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_killed_and_restarted_engine_is_found_again(endpoints: Endpoints) -> None:
    """B91, B96: kill -9, the same paths again: it binds over its own leftovers and the subscriber recovers alone."""
    process = start_process(endpoints, "boot-0")
    try:
        with Subscriber(endpoints, ["step"]) as subscriber:
            poll_until(subscriber, lambda items: len(steps_in(items)) > 5)
            for boot in range(1, 4):
                end_process(process)
                process = start_process(endpoints, f"boot-{boot}")
                items = poll_until(subscriber, has_step_of(f"boot-{boot}"))
                assert Restart(f"boot-{boot - 1}", f"boot-{boot}") in items
                after = items[items.index(Restart(f"boot-{boot - 1}", f"boot-{boot}")) :]
                assert steps_in(after)[0] == 1, "the new boot's first steps are fetched as well"
    finally:
        end_process(process)


def test_stopped_engine_is_stale_and_comes_back(endpoints: Endpoints) -> None:
    """B96: with SIGSTOP nothing arrives, so it is stale after 3 s; with SIGCONT it goes on without a hole."""
    process = start_process(endpoints, "boot-0")
    clock = FakeClock()
    try:
        with Subscriber(endpoints, ["step"], clock=clock) as subscriber:
            items = poll_until(subscriber, lambda items: len(items) > 5)
            os.kill(process.pid, signal.SIGSTOP)
            while arrived := subscriber.poll(0.05):
                items += arrived
            clock.advance(2.9)
            assert not subscriber.is_stale
            clock.advance(0.2)
            assert subscriber.is_stale
            os.kill(process.pid, signal.SIGCONT)
            last = steps_in(items)[-1]
            items += poll_until(subscriber, lambda items: len(steps_in(items)) > 5)
            assert not subscriber.is_stale
            assert steps_in(items)[-1] > last
            assert steps_in(items) == list(range(steps_in(items)[0], steps_in(items)[-1] + 1))
    finally:
        os.kill(process.pid, signal.SIGCONT)
        end_process(process)


def test_stale_does_not_listen_to_the_wall_clock(endpoints: Endpoints) -> None:
    """B101: setting the clock an hour on or five seconds back says nothing about the engine's life."""
    clock = FakeClock()
    with running(endpoints), Subscriber(endpoints, ["step"], clock=clock) as subscriber:
        for seconds in (3600.0, -7200.0, -5.0):
            clock.step_wall(seconds)
            assert subscriber.age == 0.0
            assert not subscriber.is_stale
