"""What the attached screen costs: CPU, memory, bytes to the terminal, and the time from a key to its paint, by view.

    .venv/bin/python scripts/tui_bench.py [--seconds 60] [--rate 500] [--size 120x40] [--views overview,steps]

A real `specwb attach` on a pty follows a real bus, on which a made engine publishes ``--rate`` steps a second of up to
64 requests (and their rows, should somebody subscribe to them). CPU is that of the screen's process alone, in percent
of one core. A key is a view's number or `?`; its paint is the arrival of bytes that only the changed screen has.
Nothing is measured before the screen keeps as many steps as it ever will: from then on its memory should be flat.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VIEWS = ("overview", "steps", "acceptance", "decisions", "knobs")
PATIENCE_S = 30.0
SETTLE_S = 3.0
KEPT = 22_500
"""Rows that the screen keeps at most, as it trims them in lumps; until it has them its memory grows."""
DIALOG = "╰".encode()
"""The corner of a dialog's frame; no view has one."""
TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Screen:
    """`specwb attach` on a pty."""

    def __init__(self, name: str, size: tuple[int, int], command: list[str] | None = None) -> None:
        """``command``: another way to run it."""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color"}
        command = command or [sys.executable, "-m", "workbench", "attach", name]
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=ROOT, env=environment, start_new_session=True
        )
        os.close(slave)
        self.bytes = 0

    def read(self, seconds: float) -> bytes:
        """What is written within so long; returns at the first output."""
        if not select.select([self.master], [], [], max(0.0, seconds))[0]:
            return b""
        data = os.read(self.master, 1 << 16)
        self.bytes += len(data)
        return data

    def watch(self, seconds: float) -> None:
        """Let it run."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def press(self, key: bytes, expect: bytes) -> float:
        """Milliseconds from a key to the bytes that it brings.

        Raises:
            TimeoutError: they never came.
        """
        began = time.monotonic()
        os.write(self.master, key)
        seen = b""
        while expect not in seen:
            seen += self.read(began + PATIENCE_S - time.monotonic())
            if time.monotonic() - began > PATIENCE_S:
                raise TimeoutError(f"{expect!r} never came after {key!r}; got {seen[-500:]!r}")
        return (time.monotonic() - began) * 1e3

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def rss_mb(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE / 1e6

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < end:
            try:
                self.read(0.1)
            except OSError:
                break
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


def percentiles(times_ms: list[float]) -> dict[str, float]:
    ordered = sorted(times_ms)
    return {
        "p50": round(statistics.median(ordered), 1),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 1),
        "max": round(ordered[-1], 1),
    }


def measure(screen: Screen, view: str, seconds: float, keys: int) -> dict[str, Any]:
    """One view: left alone for ``seconds``, then with keys."""
    number = VIEWS.index(view) + 1
    other = number % len(VIEWS) + 1
    here, there = (f"[{n} {VIEWS[n - 1]}]".encode() for n in (number, other))
    digit, away = str(number).encode(), str(other).encode()
    screen.press(away, there)
    screen.press(digit, here)
    screen.watch(SETTLE_S)
    began, cpu, rss, written = time.monotonic(), screen.cpu_s(), screen.rss_mb(), screen.bytes
    screen.watch(seconds)
    took = time.monotonic() - began
    found: dict[str, Any] = {
        "view": view,
        "cpu_percent": round(100 * (screen.cpu_s() - cpu) / took, 1),
        "rss_mb": [round(rss, 1), round(screen.rss_mb(), 1)],
        "kb_per_s": round((screen.bytes - written) / took / 1e3, 1),
    }
    times: list[float] = []
    for turn in range(keys):
        # A person's pace, and never the same distance to the screen's own.
        screen.watch(0.15 + 0.013 * (turn % 8))
        if turn % 2:
            screen.press(away, there)
            screen.watch(0.15)
            times.append(screen.press(digit, here))
        else:
            times.append(screen.press(b"?", DIALOG))
            screen.watch(0.15)  # the rest of that paint has the view's words too
            screen.press(b"\x1b", here[1:-1].split()[1])
    found["key_to_paint_ms"] = percentiles(times)
    return found


def publish(name: str, rate: float) -> None:
    """The made engine, in a process of its own: until a signal ends it."""
    from probes.events import RequestRow, RowsEvent
    from tests.workbench.made_engine import MadeEngine

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with MadeEngine(name) as engine:
        print("ready", flush=True)
        loads = [1, 2, 3, 4, 6, 8, 16, 32, 64, 64, 48, 12, 5, 4, 3, 2]
        began = time.monotonic()
        count = 0
        while True:
            due = int((time.monotonic() - began) * rate)
            while count < due:
                count += 1
                load = loads[int(count / rate) % len(loads)]
                # Deciding is left to the made engine; every third second somebody compares.
                forced = {"spec": False} if int(count / rate) % 3 == 0 else {}
                number = engine.step(load, round_us=round(1e6 / rate), **forced)
                if engine.bus.wants("rows"):
                    rows = [
                        RequestRow(request_id=f"r{i}", width=16, committed=number, emitted=2, correct=1, draft_lag=0)
                        for i in range(load)
                    ]
                    engine.publish(RowsEvent(boot_id=engine.boot_id, step=number, t=engine.bus.t(), rows=rows))
            time.sleep(0.004)


def main() -> None:
    if sys.argv[1:2] == ["--publish"]:
        publish(sys.argv[2], float(sys.argv[3]))
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="each view is left alone for so long")
    parser.add_argument("--rate", type=float, default=500.0, help="steps a second")
    parser.add_argument("--size", default="120x40", help="columns x lines of the terminal")
    parser.add_argument("--views", default=",".join(VIEWS))
    parser.add_argument("--keys", type=int, default=30, help="keys pressed in each view")
    parser.add_argument("--unfilled", action="store_true", help="begin at once: memory still grows")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    columns, lines = (int(part) for part in options.size.split("x"))
    views = options.views.split(",")
    if unknown := [view for view in views if view not in VIEWS]:
        parser.error(f"no view {', '.join(unknown)}; there are {', '.join(VIEWS)}")
    runtime = tempfile.mkdtemp(prefix="tb")
    os.environ["XDG_RUNTIME_DIR"] = runtime
    engine = subprocess.Popen(
        [sys.executable, __file__, "--publish", "bench", str(options.rate)], stdout=subprocess.PIPE, cwd=ROOT
    )
    found: list[dict[str, Any]] = []
    try:
        assert engine.stdout is not None
        if engine.stdout.readline().strip() != b"ready":
            sys.exit("the made engine did not start")
        screen = Screen("bench", (columns, lines))
        try:
            screen.watch(SETTLE_S + (0 if options.unfilled else KEPT / options.rate))
            print(f"{options.rate:.0f} steps/s, {options.size}, {options.seconds:.0f} s a view", flush=True)
            print(f"{'view':<12}{'CPU %':>7}{'kB/s':>8}{'RSS MB':>16}   key to paint, ms: p50, p95, max", flush=True)
            for view in views:
                row = measure(screen, view, options.seconds, options.keys)
                found.append(row)
                rss = "{} to {}".format(*row["rss_mb"])
                times = ", ".join(str(value) for value in row["key_to_paint_ms"].values())
                print(f"{view:<12}{row['cpu_percent']:>7}{row['kb_per_s']:>8}{rss:>16}   {times}", flush=True)
        finally:
            screen.close()
    finally:
        engine.terminate()
        engine.wait()
    if options.json:
        options.json.write_text(json.dumps({"rate": options.rate, "size": options.size, "views": found}, indent=1))


if __name__ == "__main__":
    main()
