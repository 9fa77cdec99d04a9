"""Makes what recordings/ ships: sessions of the real engine with the default model, recorded as `specwb record` does.

    .venv/bin/python scripts/make_recordings.py [ramp] [by-hand] [160-vs-2]

``ramp``: a load ramp up through the threshold and down again. ``by-hand``: an operator switches, moves the threshold
and changes the tree while two clients run. ``160-vs-2``: scripts/late_decision.py's engine with the story's bug.
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from subprocess import DEVNULL, Popen

import msgspec

from probes.ci.client_ramp import ClientRamp
from probes.ci.openai_client import OpenAiClient
from probes.control import ControlClient, Refused
from probes.discovery import EngineRecord, list_records
from workbench.demo.prompts import load_prompts
from workbench.recording.recorder import Recorder

HERE = Path(__file__).parent
FOLDER = HERE.parent / "recordings"
LARGEST = 2_000_000
PATIENCE_S = 120.0
PROMPTS = load_prompts()


class Clients:
    """Closed-loop clients that ask until they are told to stop."""

    def __init__(self, client: OpenAiClient, clients: int, tokens: int) -> None:
        self._stop = threading.Event()
        numbers = count()

        def run() -> None:
            while not self._stop.is_set():
                client.chat(PROMPTS[next(numbers) % len(PROMPTS)].prompt, tokens)

        self._threads = [threading.Thread(target=run, daemon=True) for _ in range(clients)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let each have its last answer."""
        self._stop.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)


def ramp(record: EngineRecord, client: OpenAiClient) -> None:
    clients = ClientRamp(lambda prompt: client.chat(prompt.prompt, 40).token_ids, PROMPTS, [1, 2, 4, 8, 4, 2, 1])
    clients.start()
    while clients.is_running:
        time.sleep(0.1)
    if clients.failure:
        raise clients.failure


def by_hand(record: EngineRecord, client: OpenAiClient) -> None:
    changes: list[tuple[dict[str, str | int], str]] = [
        ({"spec": "off"}, "how fast is it without?"),
        ({"spec": "auto"}, "with it again"),
        ({"threshold": 1}, "two clients should run plain now"),
        ({"threshold": 4}, "undo: threshold back to 4"),
        ({"topk": 1, "steps": 3, "draft_tokens": 4}, "a chain instead of the tree"),
        ({"topk": 4, "steps": 3, "draft_tokens": 16}, "one level deeper"),
        ({"steps": 2}, "as it was"),
        ({"spec": "on"}, "by hand, whatever the load"),
        ({"spec": "auto"}, "done"),
    ]
    clients = Clients(client, 2, 60)
    for new, why in changes:
        time.sleep(5.0)
        with ControlClient(record) as control:
            reply = control.set_knobs(new, who="operator", why=why)
        assert not isinstance(reply, Refused), reply.message
    time.sleep(5.0)
    clients.stop()


def late(record: EngineRecord, client: OpenAiClient) -> None:
    few = Clients(client, 3, 60)
    time.sleep(4.0)
    more = Clients(client, 7, 60)
    time.sleep(25.0)
    more.stop()
    time.sleep(3.0)
    few.stop()


SESSIONS: dict[str, tuple[Callable[[EngineRecord, OpenAiClient], None], int, tuple[str, ...], str]] = {
    "ramp": (ramp, 4, (sys.executable, "-m", "engine.process"), "A load ramp through the threshold of 4 and back."),
    "by-hand": (by_hand, 4, (sys.executable, "-m", "engine.process"), "An operator switches while two clients run."),
    "160-vs-2": (
        late,
        16,
        (sys.executable, str(HERE / "late_decision.py")),
        "An engine with an injected fault (scripts/late_decision.py): it decides after the slots are reserved.",
    ),
}
"""Name -> what happens, the threshold, the engine's command, the recording's note."""


def make(name: str) -> None:
    """Serve, record, check the size."""
    happens, threshold, command, note = SESSIONS[name]
    path = FOLDER / f"{name}.mcap"
    engine = {"knobs": {"threshold": threshold}, "kv_tokens": 16384}
    config = {"server": {"name": name, "port": 0, "engine_command": command}, "engine": engine}
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(msgspec.json.encode(config))
        file.flush()
        server = Popen([sys.executable, "-m", "engine.server", "--config-json", file.name], stdin=DEVNULL)
        try:
            record = wait_ready(name)
            assert record.http_url is not None
            path.unlink(missing_ok=True)
            recorder = Recorder(record, path, note=note)
            recorder.start()
            happens(record, OpenAiClient(record.http_url))
            time.sleep(2.0)
            status = recorder.stop()
            print(status)
        finally:
            server.terminate()
            server.wait(30)
    size = path.stat().st_size
    assert size < LARGEST, f"{path.name} has {size} bytes, more than {LARGEST}"


def wait_ready(name: str) -> EngineRecord:
    """Until it serves."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        for record in list_records():
            if record.name == name and record.state == "ready":
                return record
        time.sleep(0.1)
    raise SystemExit(f"{name}: the engine was not ready within {PATIENCE_S:g} s")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or SESSIONS:
        if wanted not in SESSIONS:
            sys.exit(f"no session {wanted!r}; the sessions are {', '.join(SESSIONS)}")
        make(wanted)
