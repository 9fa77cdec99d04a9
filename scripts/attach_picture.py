"""Makes docs/attach.svg: the attached screen on a running engine, while its load goes through the threshold and back,
and an operator switches speculation off and on.

    .venv/bin/specwb serve --name demo threshold=4
    .venv/bin/python scripts/attach_picture.py demo docs/attach.svg

The screen is the real one, without a terminal; it is saved by Textual's own export.
"""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from probes.ci.openai_client import Answer, OpenAiClient
from probes.clock import SystemClock
from probes.control import ControlClient
from probes.discovery import EngineRecord, find_record
from workbench.demo.prompts import load_prompts
from workbench.replay.screenshot import without_fonts
from workbench.tui.app import AttachApp
from workbench.tui.bus_feed import BusFeed
from workbench.tui.bus_steering import BusSteering

SIZE = (132, 37)
LONG, SHORT = 120, 6
"""Tokens of the answers that stay, and of those that push the load over the threshold for a moment."""
PATIENCE_S = 120.0


async def until(app: AttachApp, what: str, steps: int = 0, *, mode: str | None = None) -> None:
    """Wait for ``steps`` more steps, and for one of that mode."""

    async def watch() -> None:
        first = app.state.last_step.step if app.state.last_step else 0
        while True:
            step = app.state.last_step
            if step is not None and step.step >= first + steps and mode in (None, step.mode):
                return
            await asyncio.sleep(0.02)

    try:
        await asyncio.wait_for(watch(), PATIENCE_S)
    except TimeoutError:
        sys.exit(f"never came: {what}")


def switch(record: EngineRecord, value: str, why: str) -> None:
    with ControlClient(record, timeout=PATIENCE_S) as client:
        client.set_knobs({"spec": value}, who="operator", why=why)


async def picture(record: EngineRecord, path: Path) -> None:
    assert record.http_url is not None
    client = OpenAiClient(record.http_url, timeout=PATIENCE_S)
    prompts = [prompt.prompt for prompt in load_prompts()]
    app = AttachApp(record.name, BusFeed(record), SystemClock(), BusSteering(record))
    with ThreadPoolExecutor(16) as pool:

        def ask(count: int, tokens: int) -> list[Future[Answer]]:
            return [pool.submit(client.chat, prompts[i % len(prompts)], tokens) for i in range(count)]

        async with app.run_test(size=SIZE) as pilot:
            while not app.state.knobs:
                await asyncio.sleep(0.05)
            answers = ask(int(app.state.knobs["threshold"]) - 1, LONG)
            await until(app, "speculation under the threshold", 4, mode="spec")
            answers += ask(3, SHORT)
            await until(app, "a plain step above the threshold", mode="plain")
            await until(app, "speculation again", mode="spec")
            await until(app, "more of it", 2, mode="spec")
            switch(record, "off", "compare with plain")
            await until(app, "plain steps by hand", 3, mode="plain")
            switch(record, "auto", "done")
            await until(app, "speculation once more", mode="spec")
            await until(app, "more of that", 2, mode="spec")
            await pilot.pause(0.2)
            path.write_text(without_fonts(app.export_screenshot(title=f"specwb attach {record.name}")))
    for answer in answers:
        answer.result()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: attach_picture.py ENGINE FILE.svg")
    asyncio.run(picture(find_record(sys.argv[1]), Path(sys.argv[2])))
