"""How soon the engine acknowledges a key: speculation toggled in the attached screen of a real, loaded engine.

    .venv/bin/python scripts/steering_bench.py [--toggles 40] [--clients 2] [--threads 1]

The key is the one that confirms (`y`). From there to the arrival of the engine's answer in the screen's process is the
time; what the engine itself adds to it is the rest of the step that runs, so it is compared with the length of the last
step under the old knobs. With ``--threads 1`` the engine has a core of its own; the rest share the other one.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from observer_cost import pin
from tui_bench import DIALOG, Screen, percentiles

from probes.ci.openai_client import OpenAiClient
from probes.control import ControlClient
from probes.discovery import EngineRecord
from probes.events import StepEvent
from workbench.bus_follower import BusFollower
from workbench.demo.prompts import load_prompts
from workbench.demo.served_engine import ServedEngine

KEYS = {"on": b"2", "off": b"3"}
"""In the box that asks for a mode."""
SETTLE_S = 4.0
PAUSE_S = 0.7
"""Between two changes, and a bit: never at the same place of a step."""


class Load:
    """Clients that ask one prompt after another."""

    def __init__(self, url: str, clients: int) -> None:
        self._client = OpenAiClient(url)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def _ask(self, number: int) -> None:
        prompts = [prompt.prompt for prompt in load_prompts()]
        while not self._stop.is_set():
            self._client.chat(prompts[number % len(prompts)], 100)
            number += 1

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def attach_timed(name: str, path: str) -> int:
    """`specwb attach`, which notes when an answer came: a line of (monotonic seconds, first step) each."""
    from workbench.cli import main
    from workbench.tui import screen
    from workbench.tui.bus_steering import BusSteering
    from workbench.tui.steering import Applied

    class TimedSteering(BusSteering):
        def set_knobs(
            self, changes: dict[str, Any], expect: dict[str, Any], why: str, *, revert_after_s: float | None = None
        ) -> Applied:
            applied = super().set_knobs(changes, expect, why, revert_after_s=revert_after_s)
            came = time.monotonic()
            with open(path, "a") as file:
                file.write(json.dumps([came, applied.step]) + "\n")
            return applied

    screen.BusSteering = TimedSteering  # type: ignore[attr-defined,misc]
    return main(["attach", name])


def toggle(screen: Screen, toggles: int) -> list[float]:
    """Change the mode so many times; when each was confirmed."""
    pressed = []
    for number in range(toggles):
        screen.press(b"s", DIALOG)
        screen.watch(0.2)
        screen.press(KEYS["off" if number % 2 else "on"], b"y or enter")
        screen.watch(0.2)
        pressed.append(time.monotonic())
        screen.press(b"y", b"took effect")
        screen.watch(PAUSE_S + 0.017 * (number % 11))
    return pressed


def measure(record: EngineRecord, url: str, options: argparse.Namespace, answers: Path) -> dict[str, Any]:
    """Toggle under load."""
    steps: dict[int, StepEvent] = {}

    def take(items: list[Any]) -> None:
        steps.update((item.step, item) for item in items if isinstance(item, StepEvent))

    follower = BusFollower(record, ("step",), "steering bench", 0.2)
    follower.start(take)
    load = Load(url, options.clients)
    screen = Screen(record.name, (120, 40), [sys.executable, __file__, "--attach", record.name, str(answers)])
    try:
        screen.watch(SETTLE_S)
        pressed = toggle(screen, options.toggles)
    finally:
        screen.close()
        load.stop()
        follower.close()
    came = [json.loads(line) for line in answers.read_text().splitlines()]
    took, over, lengths = [], [], []
    for at, (answered, first) in zip(pressed, came, strict=True):
        last = steps.get(first - 1)
        if last is None or not last.requests:
            continue  # it idled, or a prompt was being read
        lengths.append(sum(last.cpu_us.values()) / 1e3)
        took.append((answered - at) * 1e3)
        over.append(took[-1] - lengths[-1])
    return {
        "changes": len(took),
        "key_to_answer_ms": percentiles(took),
        "step_ms": percentiles(lengths),
        "answer_less_step_ms": percentiles(over),
    }


def main() -> None:
    """Entry point."""
    if sys.argv[1:2] == ["--attach"]:
        sys.exit(attach_timed(*sys.argv[2:4]))
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clients", type=int, default=2)
    parser.add_argument("--toggles", type=int, default=40)
    options = parser.parse_args()
    pinned = options.threads == 1 and (os.cpu_count() or 1) > 1
    if pinned:
        os.sched_setaffinity(0, {1})
    words = ["--model", options.model, "--threads", str(options.threads)]
    with tempfile.TemporaryDirectory() as folder, ServedEngine("steering-bench", words) as engine:
        record = engine.wait_ready(lambda text: print(text, file=sys.stderr))
        with ControlClient(record) as control:
            engine_pid = control.hello().pid
        if pinned:
            pin(engine_pid, {0})
        assert record.http_url is not None
        print(json.dumps({"pinned": pinned, **measure(record, record.http_url, options, Path(folder, "answers"))}))


if __name__ == "__main__":
    main()
