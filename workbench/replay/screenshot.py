"""A replay's screen without a terminal, as a picture or as text."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

from textual.app import App
from textual.pilot import Pilot

from workbench.replay.replay_app import ReplayApp
from workbench.tui.key_line import KeyLine

FONT = 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace'
PATIENCE_S = 30.0


class ScreenshotError(Exception):
    """The screen could not be drawn or kept; the message says why."""


def without_fonts(svg: str) -> str:
    """A page that shows the picture fetches no fonts: name those that readers have."""
    svg = re.sub(r"@font-face\s*\{[^}]*\}\s*", "", svg)
    return re.sub(r"font-family: [^;]+;", f"font-family: {FONT};", svg)


def screen_text(app: App[int]) -> str:
    """The cells of the screen, line by line, without colours; spaces at the ends of lines left out."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def footer_is_current(app: App[int]) -> bool:
    """The footer shows the keys of what has the focus; it is filled and laid out a moment after that changed."""
    keys = app.query_one(KeyLine)
    keys.sync()
    return bool(keys.text) and bool(screen_text(app).split("\n")[-2])


def take_screenshot(app: ReplayApp, path: Path, size: tuple[int, int]) -> None:
    """Draw the screen where the player stands, and write it in the format that the name ends in.

    Raises:
        ScreenshotError: it cannot be written, or the screen crashed.
    """
    made = ""

    async def draw(pilot: Pilot[object]) -> None:
        nonlocal made
        async with asyncio.timeout(PATIENCE_S):
            while not footer_is_current(app):  # Textual fills it a moment after the start
                await pilot.pause(0.01)
        app.tick()
        await pilot.pause()
        if path.suffix == ".svg":
            made = without_fonts(app.export_screenshot(title=f"specwb replay {app.player.file_name}"))
        else:
            made = screen_text(app)
        app.exit(0)

    asyncio.run(app.run_async(headless=True, size=size, auto_pilot=draw))
    if app.crash is not None:
        raise ScreenshotError(f"the screen ended with {type(app.crash).__name__}: {app.crash}") from app.crash
    try:
        path.write_text(made, encoding="utf-8")
    except OSError as error:
        raise ScreenshotError(f"{path} cannot be written: {error.strerror}") from None
