"""Clients that come and go."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from probes.ci.client_ramp import ClientRamp, levels_through

PROMPTS = [f"prompt {number}" for number in range(8)]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("threshold", "most", "levels"),
    [
        (4, 64, [1, 2, 4, 8, 4, 2, 1]),
        (0, 64, [1, 2, 4, 8, 4, 2, 1]),
        (8, 64, [1, 2, 4, 8, 16, 8, 4, 2, 1]),
        (4, 6, [1, 2, 4, 6, 4, 2, 1]),
        (4, 1, [1]),
    ],
)
def test_levels_go_through_the_threshold(threshold: int, most: int, levels: list[int]) -> None:
    assert levels_through(threshold, most) == levels


class Gate:
    """Answers requests one at a time, when told to."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._open = threading.Semaphore(0)
        self._lock = threading.Lock()

    def send(self, prompt: str) -> list[int]:
        with self._lock:
            self.sent.append(prompt)
        assert self._open.acquire(timeout=30)
        return [len(self.sent)]

    def answer(self) -> None:
        self._open.release()


def test_every_level_is_reached_while_others_are_in_mid_sentence() -> None:
    """One answer at a time: the number of requests in flight follows the levels, and never falls to none between."""
    gate = Gate()
    ramp = ClientRamp(gate.send, PROMPTS, [1, 2, 4, 8, 4, 2, 1])
    ramp.start()
    seen = []
    while ramp.is_running:
        wait_until(lambda: len(gate.sent) == len(ramp.outputs) + ramp.clients)
        seen.append(ramp.clients)
        answered = len(ramp.outputs)
        gate.answer()
        wait_until(lambda answered=answered: len(ramp.outputs) > answered)  # type: ignore[misc]
    changes = [level for index, level in enumerate(seen) if index == 0 or level != seen[index - 1]]
    assert changes == [1, 2, 4, 8, 7, 6, 5, 4, 3, 2, 1]
    assert ramp.failure is None
    assert len(ramp.outputs) == len(gate.sent)
    assert {prompt for prompt, _ in ramp.outputs} == set(PROMPTS)


def test_stopped_it_waits_for_what_is_in_flight_and_sends_no_more() -> None:
    gate = Gate()
    ramp = ClientRamp(gate.send, PROMPTS, [4, 8])
    ramp.start()
    wait_until(lambda: len(gate.sent) == 4)
    ramp.stop()
    for _ in range(4):
        gate.answer()
    wait_until(lambda: not ramp.is_running)
    assert len(gate.sent) == len(ramp.outputs) == 4


def test_a_failed_request_ends_the_ramp() -> None:
    def send(prompt: str) -> list[int]:
        raise OSError("refused")

    ramp = ClientRamp(send, PROMPTS, [4, 8])
    ramp.start()
    wait_until(lambda: not ramp.is_running)
    assert str(ramp.failure) == "refused"
    assert ramp.outputs == []
