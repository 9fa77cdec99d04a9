"""How a large recording opens and seeks: makes one, then reads it in a process of its own and prints what it took.

    .venv/bin/python scripts/recording_bench.py [STEPS] [SEEKS]

A million steps by default, written as a recorder would at 100 steps/s: a chunk every quarter second, a heartbeat every
second, a mode switch every ten. A jump is a seek on the screen of `specwb replay`: state rebuilt and painted (in
memory, without a terminal); its time is CPU time.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import msgspec  # noqa: E402

from tests.workbench import made_events as made  # noqa: E402
from workbench.recording.channels import DEFAULT_TOPICS  # noqa: E402
from workbench.recording.reader import Recording  # noqa: E402
from workbench.recording.writer import RecordingWriter  # noqa: E402
from workbench.replay.player import Player  # noqa: E402
from workbench.replay.replay_app import ReplayApp  # noqa: E402
from workbench.tui.collector import settle_heap  # noqa: E402

PER_SECOND, PER_CHUNK, PER_MODE = 100, 25, 1000
WINDOW = 300
"""Steps that a screen shows behind the place it was moved to."""


def make(path: Path, steps: int) -> None:
    """Write the recording."""
    writer = RecordingWriter(path, DEFAULT_TOPICS)
    writer.begin(made.hello())
    kinds = [made.step(1, requests) for requests in range(1, 9)]
    for number in range(1, steps + 1):
        few = number // PER_MODE % 2 == 0
        event = kinds[number % 4 if few else 4 + number % 4]
        t = made.T0 + number / PER_SECOND
        writer.write(
            msgspec.structs.replace(event, seq=number, step=number, t=t, round_us=9_000 + number * 7919 % 2000)
        )
        if number % PER_SECOND == 0:
            writer.write(made.heartbeat(number // PER_SECOND, t=t))
        if number % PER_CHUNK == 0:
            writer.sink.flush()
    writer.finish()


def read(path: Path, seeks: int) -> dict[str, float]:
    """Open it and look around; milliseconds and megabytes."""
    plain = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    with Recording.open(path) as recording:
        opened = time.perf_counter() - began
        info = recording.info
        began = time.perf_counter()
        marks = recording.marks()
        marked = time.perf_counter() - began
        took, rng = [], random.Random(7)
        for _ in range(seeks):
            t = rng.uniform(info.start, info.end)
            began = time.perf_counter()
            shown = recording.before(t, "step", WINDOW)
            next(recording.items(start=t), None)
            took.append(time.perf_counter() - began)
            assert all(at <= t for at, _ in shown)
        took.sort()
        return {
            "steps": info.counts["step"],
            "marks": len(marks),
            "open_ms": opened * 1e3,
            "marks_ms": marked * 1e3,
            "seek_p50_ms": took[len(took) // 2] * 1e3,
            "seek_p99_ms": took[int(len(took) * 0.99)] * 1e3,
            "seek_max_ms": took[-1] * 1e3,
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "rss_before_mb": plain / 1024,
        }


async def jump(path: Path, view: str, jumps: int) -> dict[str, float]:
    """Jump about on one view of the screen; CPU milliseconds from the key's action to the painted screen."""
    with Recording.open(path) as recording:
        player = Player(recording)
        player.clock.pause()
        app = ReplayApp(player, view)
        took, rng = [], random.Random(7)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.pause()
            settle_heap()  # as `specwb replay` does once it stands
            for _ in range(jumps):
                place = rng.uniform(recording.info.start, recording.info.end) - recording.info.start
                began = time.process_time()
                app._did(player.seek(f"{place:.3f}s"))
                await pilot._wait_for_screen()
                app.screen._on_timer_update()
                took.append(time.process_time() - began)
                await pilot.pause()
    took.sort()
    return {
        f"{view}_jump_p50_ms": took[len(took) // 2] * 1e3,
        f"{view}_jump_p99_ms": took[int(len(took) * 0.99)] * 1e3,
        f"{view}_jump_max_ms": took[-1] * 1e3,
    }


def tell(kind: str, *words: str) -> None:
    """Measure in a process of its own, and print."""
    command = [sys.executable, __file__, *words]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    print(f"{kind}  " + "  ".join(f"{name} {value:,.1f}" for name, value in found.items()))


def main() -> None:
    if sys.argv[1:2] == ["--read"]:
        print(json.dumps(read(Path(sys.argv[2]), int(sys.argv[3]))))
        return
    if sys.argv[1:2] == ["--jump"]:
        print(json.dumps(asyncio.run(jump(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))))
        return
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    seeks = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.mcap"
        began = time.perf_counter()
        make(path, steps)
        took = time.perf_counter() - began
        print(f"wrote {steps} steps in {took:.1f} s ({steps / took:.0f}/s), {path.stat().st_size / 1e6:.1f} MB")
        for file in (path, path.with_suffix(".cut.part")):
            if not file.exists():  # the same without its summary, as a killed recorder leaves it
                shutil.copyfile(path, file)
                os.truncate(file, path.stat().st_size * 9 // 10)
            kind = "cut off " if file.suffix == ".part" else "finished"
            tell(kind, "--read", str(file), str(seeks))
        for view in ("overview", "steps"):
            tell("finished", "--jump", str(path), view, str(seeks // 5))


if __name__ == "__main__":
    main()
