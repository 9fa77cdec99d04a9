"""A feed and a steering that a test holds in its hands, and what the screen shows as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from probes.clock import FakeClock
from workbench.tui.app import AttachApp
from workbench.tui.feed import FeedItem
from workbench.tui.record_key import MakeRecording
from workbench.tui.steering import Applied, SteeringError


class FakeFeed:
    """Gives out what it was given, at the next drain."""

    def __init__(self, items: Iterable[FeedItem] = ()) -> None:
        self.items: list[FeedItem] = list(items)
        self.is_open = False

    def start(self) -> None:
        self.is_open = True

    def drain(self) -> list[FeedItem]:
        items, self.items = self.items, []
        return items

    def close(self) -> None:
        self.is_open = False


class FakeSteering:
    """Records what it was asked; answers, or refuses."""

    not_here = ""

    def __init__(self, step: int = 100, refusal: str = "") -> None:
        self.step = step
        self.refusal = refusal
        self.asked: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.terms: list[tuple[str, float | None]] = []
        """(why, seconds until it is taken back) of each."""

    def set_knobs(
        self, changes: dict[str, Any], expect: dict[str, Any], why: str, *, revert_after_s: float | None = None
    ) -> Applied:
        self.asked.append((changes, expect))
        self.terms.append((why, revert_after_s))
        if self.refusal:
            raise SteeringError(self.refusal)
        return Applied(expect, changes, self.step)


class Bench:
    """An app on a fake feed and a fake clock."""

    def __init__(
        self,
        items: Iterable[FeedItem] = (),
        steering: FakeSteering | None = None,
        *,
        view: str = "steps",
        make_recording: MakeRecording | None = None,
    ) -> None:
        self.feed = FakeFeed(items)
        self.clock = FakeClock()
        self.steering = steering or FakeSteering()
        self.app = AttachApp("demo", self.feed, self.clock, self.steering, view=view, make_recording=make_recording)

    def feed_now(self, *items: FeedItem) -> None:
        """Give the app items and let it take them in at once."""
        self.feed.items.extend(items)
        self.app.tick()

    def text(self) -> str:
        """The screen as text, line by line."""
        return "\n".join(strip.text.rstrip() for strip in self.app.screen._compositor.render_strips())
