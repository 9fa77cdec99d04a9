"""The engine's side of control: what the bus answers by itself, and what waits for the engine's loop."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from probes.control import (
    Applied,
    GapReport,
    GetState,
    Hello,
    HelloReply,
    Noted,
    Ping,
    Pong,
    Refused,
    Reply,
    SetKnobs,
    State,
    decode_request,
)
from probes.events import HelloEvent

MAX_WAITING = 64
"""Requests that wait for the engine's loop; more are refused as ``busy``."""

MAX_LOSSES = 64
"""Subscribers and topics whose losses are told apart between two heartbeats."""


class PendingControl:
    """A change that the engine's loop must answer, once, from any thread."""

    def __init__(self, request: SetKnobs, send: Callable[[Reply], None]) -> None:
        self.request = request
        self._send = send
        self._lock = threading.Lock()
        self._answered = False

    def reply(self, reply: Applied | Refused) -> None:
        """Answer the client; a second answer is ignored."""
        with self._lock:
            if self._answered:
                return
            self._answered = True
        self._send(reply)


@dataclass
class Loss:
    """What one subscriber lost of one topic since it was last published."""

    who: str
    topic: str
    first: int
    last: int
    lost: int


class ControlDesk:
    """Answers requests. ``handle`` runs in the publisher thread, ``take`` in the engine's loop."""

    def __init__(
        self,
        *,
        boot_id: str,
        hello: Callable[[], HelloEvent],
        where: Callable[[], tuple[str, float, int]],
        on_waiting: Callable[[], None],
    ) -> None:
        """``hello``: the engine as it is now. ``where``: stage, seconds in it, step. ``on_waiting``: a change waits."""
        self._boot_id = boot_id
        self._hello = hello
        self._where = where
        self._on_waiting = on_waiting
        self._waiting: deque[PendingControl] = deque()
        self._losses: dict[tuple[str, str], Loss] = {}
        self._closed = False

    def handle(self, payload: bytes, send: Callable[[Reply], None]) -> None:
        """Answer one request through ``send``, now or, for a change, when the loop has taken it."""
        request_id = ""
        try:
            request = decode_request(payload)
            request_id = request.request_id
            if isinstance(request, SetKnobs):
                self._queue(request, send)
            else:
                send(self._answer(request))
        except (msgspec.MsgspecError, RecursionError) as error:
            message = f"{error}; expected a msgpack map with a type of set_knobs, get_state, hello, gap_report or ping"
            send(Refused(request_id=_id_in(payload), code="malformed", message=message))
        except Exception as error:
            # The hooks are the engine's; whatever they raise must not stop the bus.
            send(Refused(request_id=request_id, code="internal", message=f"{type(error).__name__}: {error}"))

    def take(self) -> list[PendingControl]:
        """Changes that wait, oldest first; the caller owes each a reply."""
        taken: list[PendingControl] = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def take_losses(self) -> list[Loss]:
        """What subscribers reported since the last call, one entry a subscriber and topic."""
        losses, self._losses = list(self._losses.values()), {}
        return losses

    def close(self) -> None:
        """Refuse what still waits."""
        self._closed = True
        for pending in self.take():
            pending.reply(_closing(pending.request.request_id))

    def _queue(self, request: SetKnobs, send: Callable[[Reply], None]) -> None:
        if self._closed:
            send(_closing(request.request_id))
        elif len(self._waiting) >= MAX_WAITING:
            stage, seconds, _ = self._where()
            message = f"{MAX_WAITING} changes wait already; the engine has been in {stage!r} for {seconds:.1f} s"
            send(Refused(request_id=request.request_id, code="busy", message=message))
        else:
            self._waiting.append(PendingControl(request, send))
            self._on_waiting()

    def _answer(self, request: GetState | Hello | GapReport | Ping) -> Reply:
        match request:
            case Hello():
                return HelloReply(request_id=request.request_id, event=self._hello())
            case GetState():
                hello = self._hello()
                stage, seconds, step = self._where()
                return State(
                    request_id=request.request_id,
                    boot_id=self._boot_id,
                    knobs=hello.knobs,
                    knob_epoch=hello.knob_epoch,
                    step=max(step, hello.step),
                    stage=stage,
                    stage_s=seconds,
                    t=hello.t,
                    reverts=hello.reverts,
                )
            case GapReport():
                self._note(request)
                return Noted(request_id=request.request_id)
            case Ping():
                return Pong(request_id=request.request_id, boot_id=self._boot_id)

    def _note(self, report: GapReport) -> None:
        if report.boot_id not in ("", self._boot_id):
            return
        lost = max(0, report.last - report.first + 1)
        loss = self._losses.get((report.who, report.topic))
        if loss is not None:
            loss.first, loss.last, loss.lost = (
                min(loss.first, report.first),
                max(loss.last, report.last),
                loss.lost + lost,
            )
        elif len(self._losses) < MAX_LOSSES:
            self._losses[report.who, report.topic] = Loss(report.who, report.topic, report.first, report.last, lost)


def _closing(request_id: str) -> Refused:
    return Refused(request_id=request_id, code="closing", message="the engine is shutting down")


def _id_in(payload: bytes) -> str:
    """The request id of a message that could not be understood, so that its sender can tell whose answer this is."""
    try:
        found = msgspec.msgpack.decode(payload)
    except (msgspec.MsgspecError, RecursionError):
        return ""
    request_id = found.get("request_id", "") if isinstance(found, dict) else ""
    return request_id if isinstance(request_id, str) else ""
