"""Control messages, and the client that sends them.

One msgpack map a message, tagged with ``type``, over a DEALER (or REQ) socket to the engine's ROUTER. Every request
gets exactly one reply with the same ``request_id``.
"""

from __future__ import annotations

import getpass
import os
import threading
import time
import uuid
from types import TracebackType
from typing import Any, Literal

import msgspec
import zmq

from probes.discovery import EngineRecord
from probes.endpoints import Endpoints, ipc_path, listener_at
from probes.errors import ProbeError
from probes.events import HelloEvent, KnobRevert

MAX_MESSAGE = 1 << 20
"""Bytes of the largest request an engine accepts; a peer that sends more is disconnected."""

RefusedCode = Literal[
    "unknown_knob", "bad_value", "conflict", "inconsistent", "unsupported", "malformed", "busy", "closing", "internal"
]


class ControlError(ProbeError):
    """The engine answered a control request with something other than what was asked for."""


class ControlTimeout(ControlError):
    """The engine did not answer a control request in time."""


class SetKnobs(msgspec.Struct, frozen=True, kw_only=True, tag="set_knobs"):
    """Change knobs together, before the next step."""

    request_id: str = ""
    changes: dict[str, Any]
    expect: dict[str, Any] | None = None
    """Knob -> value that must be in force, else nothing changes and the answer is ``conflict``."""
    who: str = ""
    why: str = ""
    revert_after_s: float | None = None
    """Seconds, 1 to a week, after which the engine takes the change back by itself; null: it stays."""


class GetState(msgspec.Struct, frozen=True, kw_only=True, tag="get_state"):
    """Ask for the knobs in force."""

    request_id: str = ""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """Ask who the engine is."""

    request_id: str = ""


class GapReport(msgspec.Struct, frozen=True, kw_only=True, tag="gap_report"):
    """A subscriber says what it lost for good; the engine publishes that as an alert, ``subscriber_loss``."""

    request_id: str = ""
    topic: str
    first: int
    last: int
    who: str = ""
    boot_id: str = ""
    """Of the events; a report that reaches a later boot is ignored. Empty: of the present one."""


class Ping(msgspec.Struct, frozen=True, kw_only=True, tag="ping"):
    """Ask whether the bus answers."""

    request_id: str = ""


class Applied(msgspec.Struct, frozen=True, kw_only=True, tag="applied"):
    """The change is in force."""

    request_id: str
    old: dict[str, Any]
    """Knobs of the request -> values before."""
    new: dict[str, Any]
    step: int
    """First step that runs with the new values."""
    knob_epoch: int
    """Unchanged when every knob had its new value already."""
    revert_at: float | None = None
    """When the knobs in ``back_to`` go back by themselves, as ``t`` of the events; null: all stay."""
    back_to: dict[str, Any] = {}


class State(msgspec.Struct, frozen=True, kw_only=True, tag="state"):
    """Knobs in force and where the engine's loop is."""

    request_id: str
    boot_id: str
    knobs: dict[str, Any]
    knob_epoch: int
    step: int
    stage: str = ""
    stage_s: float = 0.0
    t: float = 0.0
    """Now, as ``t`` of the events."""
    reverts: list[KnobRevert] = []
    """Knobs that go back by themselves, soonest first."""


class HelloReply(msgspec.Struct, frozen=True, kw_only=True, tag="hello_reply"):
    """Who the engine is; ``last_seqs`` in it says from which number on its events are news."""

    request_id: str
    event: HelloEvent


class Pong(msgspec.Struct, frozen=True, kw_only=True, tag="pong"):
    """The bus answers."""

    request_id: str
    boot_id: str


class Noted(msgspec.Struct, frozen=True, kw_only=True, tag="noted"):
    """A report has arrived."""

    request_id: str


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """Nothing was changed."""

    request_id: str
    code: str
    """A ``RefusedCode``, or a newer engine's word."""
    message: str
    found: dict[str, Any] = {}
    """With ``conflict``: the knobs that differ from what was expected -> values in force."""


Request = SetKnobs | GetState | Hello | GapReport | Ping
Reply = Applied | State | HelloReply | Pong | Noted | Refused

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(Request).decode
decode_reply = msgspec.msgpack.Decoder(Reply).decode


def endpoints_of(target: EngineRecord | Endpoints) -> Endpoints:
    """The endpoints of a discovery record, or those given."""
    return target.endpoints if isinstance(target, EngineRecord) else target


def describe_self() -> str:
    """Who sends a message, unless a name was given: user and process."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        user = str(os.getuid())
    return f"{user}/{os.getpid()}"


class ControlClient:
    """Sends control requests and waits for their replies, never longer than asked. One request at a time.

    After a timeout the socket is thrown away, so that a request which never left is not delivered to the engine's
    successor. One that did leave may still be carried out: ask for the state.
    """

    def __init__(
        self,
        endpoint: str | EngineRecord | Endpoints,
        *,
        timeout: float = 5.0,
        who: str = "",
        context: zmq.Context[zmq.Socket[bytes]] | None = None,
    ) -> None:
        """``timeout``: seconds a request waits unless it says otherwise. ``who``: signs the requests."""
        self.endpoint = endpoint if isinstance(endpoint, str) else endpoints_of(endpoint).control
        self.who = who or describe_self()
        self._timeout = timeout
        self._owns_context = context is None
        self._context: zmq.Context[zmq.Socket[bytes]] = context or zmq.Context()
        self._socket: zmq.Socket[bytes] | None = None
        self._lock = threading.Lock()

    def set_knobs(
        self,
        changes: dict[str, Any],
        *,
        expect: dict[str, Any] | None = None,
        why: str = "",
        who: str | None = None,
        revert_after_s: float | None = None,
        timeout: float | None = None,
    ) -> Applied | Refused:
        """Change knobs, if ``expect`` (knob -> value) holds; for good, or for ``revert_after_s`` seconds.

        Raises:
            ControlTimeout: no answer; the change may or may not have been made.
        """
        request = SetKnobs(
            request_id=_new_id(),
            changes=changes,
            expect=expect,
            who=self.who if who is None else who,
            why=why,
            revert_after_s=revert_after_s,
        )
        reply = self.request(request, timeout)
        if isinstance(reply, Applied | Refused):
            return reply
        raise _unexpected(request, reply)

    def state(self, timeout: float | None = None) -> State:
        """The knobs in force. Raises ControlTimeout, or ControlError when the engine refuses."""
        request = GetState(request_id=_new_id())
        reply = self.request(request, timeout)
        if isinstance(reply, State):
            return reply
        raise _unexpected(request, reply)

    def hello(self, timeout: float | None = None) -> HelloEvent:
        """Who the engine is. Raises ControlTimeout, or ControlError when the engine refuses."""
        request = Hello(request_id=_new_id())
        reply = self.request(request, timeout)
        if isinstance(reply, HelloReply):
            return reply.event
        raise _unexpected(request, reply)

    def ping(self, timeout: float | None = None) -> str:
        """The engine's boot id. Raises ControlTimeout."""
        request = Ping(request_id=_new_id())
        reply = self.request(request, timeout)
        if isinstance(reply, Pong):
            return reply.boot_id
        raise _unexpected(request, reply)

    def request(self, request: Request, timeout: float | None = None) -> Reply:
        """Send any request and wait for its reply.

        Raises:
            ControlTimeout: says what to check.
        """
        limit = self._timeout if timeout is None else timeout
        deadline = time.monotonic() + limit
        if not request.request_id:
            request = msgspec.structs.replace(request, request_id=_new_id())
        with self._lock:
            socket = self._connected()
            try:
                socket.send(encode(request), zmq.NOBLOCK)
                while socket.poll(_ms_until(deadline)):
                    reply = self._receive(socket)
                    # Without an id: the engine could not even find one in what it got.
                    if reply.request_id == request.request_id or (isinstance(reply, Refused) and not reply.request_id):
                        return reply
                raise ControlTimeout(self._diagnosis(limit))
            except BaseException:
                self._drop_socket()
                raise

    def notify(self, request: Request) -> bool:
        """Send without waiting for the reply, now or when there is a connection; False when too many wait for that."""
        if not request.request_id:
            request = msgspec.structs.replace(request, request_id=_new_id())
        with self._lock:
            socket = self._connected()
            try:
                while socket.poll(0):
                    socket.recv_multipart(zmq.NOBLOCK)  # replies to earlier ones
                socket.send(encode(request), zmq.NOBLOCK)
            except zmq.Again:
                return False
            return True

    def close(self) -> None:
        """Give the socket back; returns at once."""
        with self._lock:
            self._drop_socket()
            if self._owns_context:
                self._context.destroy(linger=0)

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connected(self) -> zmq.Socket[bytes]:
        if self._socket is None:
            socket = self._context.socket(zmq.DEALER)
            socket.linger = 0
            # Not IMMEDIATE: with it the library throws away replies that were not read yet when the engine disconnects.
            socket.setsockopt(zmq.RECONNECT_IVL, 50)
            socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
            socket.setsockopt(zmq.HEARTBEAT_IVL, 1000)
            socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 5000)
            socket.connect(self.endpoint)
            self._socket = socket
        return self._socket

    def _receive(self, socket: zmq.Socket[bytes]) -> Reply:
        frames = socket.recv_multipart(zmq.NOBLOCK)
        try:
            return decode_reply(frames[-1])
        except msgspec.MsgspecError as error:
            raise ControlError(
                f"the answer from {self.endpoint} is not a reply this version knows ({error}); "
                f"is it a specwb engine of the same version?"
            ) from None

    def _drop_socket(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None

    def _diagnosis(self, limit: float) -> str:
        path = ipc_path(self.endpoint)
        found = listener_at(path)[0] if path is not None else "live"
        what = {
            "nothing": "there is no socket at that path: the engine has ended or is restarting; see `specwb ls`",
            "stale": "nobody listens on that socket any more: the engine has died; see `specwb ls`",
            "other": "that path is not a socket; see `specwb ls` for the engine's endpoints",
            "live": "someone listens there; if it is an engine it may be stopped, or in a long step "
            "(`specwb tail` shows its stage). A change may still be made later: ask with `specwb get`",
        }[found]
        return f"no answer from {self.endpoint} within {limit:g} s: {what}"


def _new_id() -> str:
    return uuid.uuid4().hex[:12]


def _ms_until(deadline: float) -> int:
    return max(0, int((deadline - time.monotonic()) * 1000))


def _unexpected(request: Request, reply: Reply) -> ControlError:
    if isinstance(reply, Refused):
        return ControlError(f"the engine refused ({reply.code}): {reply.message}")
    return ControlError(f"asked with {type(request).__name__}, answered with {type(reply).__name__}")
