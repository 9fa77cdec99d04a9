"""What is known of the engine, built item by item from a feed. Pure: no screen, no socket, no clock of its own."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import Any

from probes.events import (
    AlertEvent,
    DropEvent,
    HeartbeatEvent,
    HelloEvent,
    KnobEvent,
    StepEvent,
)
from probes.knobs import Knobs, apply_changes
from probes.simulation import UNSAID, simulation_of
from probes.subscriber import STALE_AFTER_S, Gap, Malformed, Restart
from workbench.step_words import changes_text, knob_text
from workbench.tui.accept_epochs import AcceptEpochs
from workbench.tui.audit_trail import AuditTrail
from workbench.tui.decision_log import DecisionLog
from workbench.tui.feed import FeedItem, Gone, Heard, Rewound, Skipped
from workbench.tui.gain import GainMeter
from workbench.tui.gpu_meter import GpuMeter
from workbench.tui.hello_facts import device_of
from workbench.tui.history import History
from workbench.tui.plan_alerts import PlanAlerts
from workbench.tui.timeline import Mark, Timeline
from workbench.tui.windows import Acceptance, AcceptWindow, RateWindow

BUSY_AFTER_S = 3.0
"""A stage that takes longer than this is worth a word."""


class Connection(Enum):
    """How the line to the engine is, in the word the screen shows."""

    WAITING = "WAITING"
    LIVE = "LIVE"
    IDLE = "IDLE"
    BUSY = "BUSY"
    STALE = "STALE"
    GONE = "GONE"


class SessionState:
    """Everything the panels show. ``apply`` takes the items in order; ``now`` is the screen's clock."""

    def __init__(self, capacity: int = 20_000) -> None:
        self.timeline = Timeline(capacity)
        self.version = 0
        """Grows with every item: a panel that drew this version has nothing to do."""
        self.is_replay = False
        """The items come from a recording: nobody can send the engine a request, or switch it."""
        self._clear()

    def _clear(self) -> None:
        """Know nothing, as at the start."""
        self.timeline.clear()
        self.hello: HelloEvent | None = None
        self.last_step: StepEvent | None = None
        self.heartbeat: HeartbeatEvent | None = None
        self.last_alert: AlertEvent | None = None
        self.knobs: dict[str, Any] = {}
        self.knob_epoch = -1
        self.trail = AuditTrail()
        self.decisions = DecisionLog()
        self.plan_alerts = PlanAlerts()
        self.lost: Counter[str] = Counter()
        """Topic -> events that the bus lost on the way to us."""
        self.recovered = 0
        """Events that were missing at first and fetched again."""
        self.dropped = 0
        """Events that the publisher gave up before sending, since its boot."""
        self.malformed = 0
        self.restarts = 0
        self.history = History()
        self.gains = GainMeter()
        self.epochs = AcceptEpochs()
        self.gpu = GpuMeter()
        self._has_simulated = False  # a step of this boot
        self._tokens = RateWindow()
        self._accept = AcceptWindow()
        self._gone: Gone | None = None
        self._heard_at: float | None = None
        self._lost_at: float | None = None
        self._engine_t: tuple[float, float] | None = None  # (engine's time of the newest event, our time then)
        self._step_after_heartbeat = False

    def apply(self, item: FeedItem, now: float) -> None:
        """Take one item in."""
        if isinstance(item, Heard):
            now, item = item.at, item.item
        self.version += 1
        match item:
            case StepEvent():  # first: it is what comes by the thousand
                self._event(item, now)
            case Rewound():
                self._clear()
                return
            case Skipped():
                self.timeline.append(Mark("skipped", item.text))
                return
            case Gap():
                self._lose(item, now)
            case Restart():
                self._restart(item)
            case Malformed():
                self.malformed += 1
                self.timeline.append(Mark("malformed", item.reason))
            case Gone():
                if self._gone is None:
                    self.timeline.append(Mark("gone", f"engine gone: {item.why}", severe=True))
                self._gone = item
                return
            case _:
                self._event(item, now)
        self._heard_at, self._gone = now, None

    def _event(self, event: Any, now: float) -> None:
        if not isinstance(event, StepEvent):
            self.history.hear(event.t)
        match event:
            case StepEvent():
                self._step(event)
            case HelloEvent():
                self.hello = event
                self.trail.take_hello(event)
                self._take_knobs(event.knobs, event.knob_epoch)
                self.epochs.opened(event.knob_epoch, event.t, self.knobs)
            case KnobEvent():
                self.trail.take(event)
                self._take_knobs({**self.knobs, **event.new}, event.knob_epoch)
                changed = changes_text(event.old, event.new)
                self.epochs.opened(event.knob_epoch, event.t, self.knobs, changed)
                self.history.mark(event.t, "knob", changed)
                by = f" by {event.who}" if event.who else ""
                why = f" ({event.why})" if event.why else ""
                text = f"{knob_text(event)} from step {event.step}{by}{why}"
                self.timeline.append(Mark("knob", text))
                self.decisions.note("knob", text, event.step, event.boot_id)
            case HeartbeatEvent():
                self.heartbeat, self._step_after_heartbeat = event, False
                self.dropped = max(self.dropped, event.dropped)
            case AlertEvent():
                self.last_alert = event
                self.history.mark(event.t, "alert", event.code)
                text, severe = f"{event.level}: {event.message} [{event.code}]", event.level == "error"
                self.timeline.append(Mark("alert", text, severe, event))
                self.plan_alerts.take(event)
                self.decisions.note("alert", text, event.step, event.boot_id, severe)
            case DropEvent():
                self.dropped = max(self.dropped, event.total)
                text = f"the engine dropped {event.count} {event.topic} events before sending them"
                self.timeline.append(Mark("drop", text, severe=True))
        if self._engine_t is None or event.t >= self._engine_t[0]:
            self._engine_t = (event.t, now)

    def _step(self, step: StepEvent) -> None:
        if step.knob_epoch > self.knob_epoch:  # else it may have flown while the knobs changed
            self._open_epoch(step.knob_epoch)
        self.timeline.append(step)
        self.decisions.take(step)
        self.last_step, self._step_after_heartbeat = step, True
        self._tokens.add(step.t, step.emitted)
        self._accept.add(step.t, step.correct_drafts, step.verified, step.knob_epoch)
        self.history.add(step)
        self.gains.add(step)
        self.epochs.add(step)
        self.gpu.add(step)
        self._has_simulated |= step.simulated

    def _take_knobs(self, knobs: dict[str, Any], epoch: int) -> None:
        self.knobs = dict(knobs)
        self._open_epoch(epoch)

    def _open_epoch(self, epoch: int) -> None:
        self.knob_epoch = epoch
        self._accept.new_epoch(epoch)

    def _lose(self, gap: Gap, now: float) -> None:
        if gap.recovered:
            self.recovered += gap.count
            return
        self.lost[gap.topic] += gap.count
        self._lost_at = now
        if gap.topic == "step":
            self.history.lose(gap.count)
        text = f"lost {gap.count} {gap.topic} events, numbers {gap.first} to {gap.last}"
        self.timeline.append(Mark("gap", text, severe=True))
        self.decisions.note("gap", text, severe=True)

    def _restart(self, restart: Restart) -> None:
        self.restarts += 1
        text = f"the engine restarted, boot {restart.old_boot} → {restart.new_boot}"
        self.timeline.append(Mark("restart", text, severe=True))
        self.decisions.note("restart", text, boot_id=restart.new_boot, severe=True)
        self.trail.restart(restart.new_boot)
        self.knobs = {}  # the new boot has those of its start; its hello says them
        self.last_step = self.heartbeat = self.hello = None
        self.dropped, self.knob_epoch = 0, -1
        self._engine_t = None
        self.history.restart(f"boot {restart.new_boot}")
        self.gains = GainMeter()
        self.epochs = AcceptEpochs()
        self.gpu = GpuMeter()
        self._has_simulated = False
        self._tokens.clear()
        self._accept = AcceptWindow()

    # What the panels ask.

    def connection(self, now: float) -> Connection:
        if self._gone is not None:
            return Connection.GONE
        if self._heard_at is None:
            return Connection.WAITING
        if now - self._heard_at > STALE_AFTER_S:
            return Connection.STALE
        if self.is_idle:
            return Connection.IDLE
        return Connection.BUSY if self.stage_seconds(now) > BUSY_AFTER_S else Connection.LIVE

    def silent_for(self, now: float) -> float:
        """Seconds since anything came."""
        return now - self._heard_at if self._heard_at is not None else 0.0

    @property
    def gone_because(self) -> str:
        return self._gone.why if self._gone else ""

    @property
    def is_idle(self) -> bool:
        """The newest word from the engine is a heartbeat that says it waits for work."""
        return not self._step_after_heartbeat and self.heartbeat is not None and self.heartbeat.stage == "idle"

    def stage_seconds(self, now: float) -> float:
        """Seconds the engine has been in the stage of its newest heartbeat; 0 when it has stepped since, or idles."""
        if self.heartbeat is None or self._step_after_heartbeat or self.heartbeat.stage == "idle":
            return 0.0
        return self.heartbeat.stage_s

    def mode_word(self, now: float) -> str:
        """SPEC, PLAIN, PREFILL, MIXED of the newest step; IDLE; a dash when nothing is known or it is old news."""
        if self.connection(now) in (Connection.STALE, Connection.GONE, Connection.WAITING):
            return "-"
        if self.is_idle or self.last_step is None:
            return "IDLE" if self.is_idle else "-"
        return self.last_step.mode.upper()

    def lost_recently(self, now: float, within: float = 5.0) -> bool:
        return self._lost_at is not None and now - self._lost_at <= within

    @property
    def lost_total(self) -> int:
        return sum(self.lost.values())

    def engine_now(self, now: float) -> float:
        """The engine's time by our clock: its newest stamp plus what passed here since."""
        return self._engine_t[0] + (now - self._engine_t[1]) if self._engine_t else 0.0

    def tokens_per_second(self, now: float) -> float | None:
        return self._tokens.rate(self.engine_now(now))

    def acceptance(self, now: float) -> Acceptance:
        return self._accept.read(self.engine_now(now))

    @property
    def knob_values(self) -> Knobs | None:
        """The knobs as a struct; None while unknown, or when a newer engine has knobs that we do not know."""
        try:
            return apply_changes(Knobs(), self.knobs) if self.knobs else None
        except ValueError:
            return None

    @property
    def draft_loaded(self) -> bool | None:
        return self.hello.draft is not None if self.hello else None

    @property
    def simulation(self) -> str:
        """What is not real in this engine, in words; empty when all of it is, as far as it has said."""
        said = simulation_of(self.hello) if self.hello else ""
        return said or (UNSAID if self._has_simulated else "")

    @property
    def scheduler(self) -> str:
        """``sync`` or ``overlap``, as the newest step says; empty while unknown."""
        said = self.hello.config.get("scheduler", "") if self.hello else ""
        return self.last_step.scheduler if self.last_step else str(said)

    @property
    def has_gpu(self) -> bool:
        """By the engine's own word, or by what its steps have measured."""
        return self.gpu.is_seen or device_of(self.hello).partition(":")[0] not in ("", "cpu")
