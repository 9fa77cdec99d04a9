"""What the server knows about its engine process, in one place for health, admission and discovery."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Literal

from engine.ipc import Ready

Phase = Literal["starting", "ready", "restarting", "stopping", "failed"]


@dataclass
class EngineState:
    """Written by the supervisor and the pulse; everyone else reads."""

    name: str
    phase: Phase = "starting"
    detail: str = "the engine process is starting"
    boot_id: str = ""
    ready: Ready | None = None
    """What the running boot said when it was ready; None in every other phase."""
    restarts: int = 0
    last_beat: float = 0.0
    """Monotonic time of the newest heartbeat of this boot (of ``ready``, before the first)."""
    stage: str = ""
    stage_s: float = 0.0
    """Seconds the engine's loop had been in ``stage`` at the newest heartbeat."""
    frozen_s: float = 5.0
    stage_limit_s: float = 120.0
    since: float = field(default_factory=time.monotonic)

    def move(self, phase: Phase, detail: str) -> None:
        """Enter a phase."""
        self.phase, self.detail, self.since = phase, detail, time.monotonic()
        if phase != "ready":
            self.ready = None

    def now_ready(self, ready: Ready) -> None:
        """The engine answers from now on."""
        self.move("ready", f"serving {ready.model_name}")
        self.ready = ready
        self.stage, self.stage_s, self.last_beat = "idle", 0.0, time.monotonic()

    @property
    def trouble(self) -> str | None:
        """Why a ready engine counts as stuck, in words; None when it does not."""
        silent = time.monotonic() - self.last_beat
        if silent > self.frozen_s:
            return f"no heartbeat from the engine process for {silent:.1f} s (it beats once a second)"
        if self.stage != "idle" and self.stage_s > self.stage_limit_s:
            return f"the engine has been in stage {self.stage!r} of one step for {self.stage_s:.0f} s"
        return None

    def report(self) -> tuple[int, dict[str, Any]]:
        """HTTP status and body of ``/health``: 200 only when a request would be served now."""
        trouble = self.trouble if self.phase == "ready" else None
        status = {"starting": "loading"}.get(self.phase, self.phase) if trouble is None else "stuck"
        body = {
            "status": status,
            "detail": trouble or self.detail,
            "engine": self.name,
            "boot_id": self.boot_id,
            "model": self.ready.model_name if self.ready else None,
            "restarts": self.restarts,
            "warnings": self.ready.warnings if self.ready else [],
            "stage": self.stage or None,
            "stage_s": round(self.stage_s, 3),
            "state_s": round(time.monotonic() - self.since, 3),
        }
        return (200 if status == "ready" else 503), body
