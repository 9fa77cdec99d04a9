"""The engine's end of the bus: three sockets and the thread that owns them.

The engine's loop only ever appends to a queue. Encoding, sending, heartbeats, replays and the answers to control
requests happen in the publisher thread, so that an engine in a long step still answers and a subscriber that stops
reading costs it nothing: its messages are dropped at the high-water mark, and it finds out by their numbers.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from types import TracebackType

import msgspec
import zmq

from probes.bus_sockets import BusSockets, send_to
from probes.clock import Clock, EventClock, SystemClock
from probes.control import Refused, Reply, encode
from probes.control_desk import ControlDesk, PendingControl
from probes.endpoints import Endpoints
from probes.events import TOPICS, AlertEvent, DropEvent, Event, HeartbeatEvent, HelloEvent
from probes.outbox import Outbox
from probes.replay_desk import ReplayDesk
from probes.wire import WELCOME, Welcome, encode_event, pack
from probes.wire import encode as encode_payload

__all__ = ["Bus", "Endpoints", "PendingControl"]

log = logging.getLogger(__name__)

SEND_BATCH = 256
"""Events sent before the thread looks at its other sockets."""

NAP_MS = 4
"""While events keep coming the thread looks for them this often by itself. Being woken for each would make the engine's
loop wait for the interpreter lock right after it published."""

STAY_AWAKE_S = 0.1
"""Without an event for this long it sleeps until it is woken."""

CLOSE_LINGER_MS = 250
"""How long the last events may take to leave for subscribers that still read."""

COMPLAIN_EVERY_S = 10.0

_buses: weakref.WeakSet[Bus] = weakref.WeakSet()


class Bus:
    """Publishes events and receives control requests for one engine boot."""

    def __init__(
        self,
        endpoints: Endpoints,
        *,
        boot_id: str,
        name: str,
        hello: Callable[[], HelloEvent],
        ring: int = 4096,
        ring_bytes: int = 16 << 20,
        hwm: int = 2000,
        outbox: int = 8192,
        heartbeat_s: float = 1.0,
        on_control: Callable[[], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Nothing is bound before ``start``.

        Args:
            hello: makes a HelloEvent of the engine as it is now; called from the publisher thread too, so it must only
                read what is safe to read there.
            ring, ring_bytes: events and bytes kept for replay, a topic.
            hwm: messages queued for one subscriber before it loses some.
            outbox: events between engine and publisher thread before they are dropped.
            on_control: called in the publisher thread when a change waits in ``take_control``; must return at once.
        """
        self.endpoints = endpoints
        self.boot_id = boot_id
        self.name = name
        self._hello = hello
        self._hwm = hwm
        self._heartbeat_s = heartbeat_s
        self._on_control = on_control
        self._clock = clock or SystemClock()
        self._event_clock = EventClock(self._clock)
        self._outbox = Outbox(outbox)
        self._replays = ReplayDesk(boot_id, max_events=ring, max_bytes=ring_bytes)
        self._prefixes: set[bytes] = set()
        self._wanted: frozenset[str] = frozenset()
        self._stage: tuple[str, int, float] = ("starting", 0, self._clock.monotonic())
        self._desk = ControlDesk(
            boot_id=boot_id, hello=self._hello_now, where=self._where, on_waiting=self._control_waits
        )
        self._replies: list[tuple[list[bytes], Reply]] = []
        self._replies_lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._complained_at = -COMPLAIN_EVERY_S
        self._stop = False
        self._forked = False
        self.control_fd, self._control_write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        """Readable while a change waits; an idle loop can poll it beside its sockets."""
        _buses.add(self)

    # -- the engine's side ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Bind the sockets, publish the hello event, start the thread.

        Raises:
            EndpointError: an endpoint cannot be bound; names it. Nothing stays bound then.
        """
        if self._thread is not None or self._stop:
            raise RuntimeError("a bus starts once; make another one")
        sockets: BusSockets | None = None
        try:
            sockets = BusSockets(self.endpoints, hwm=self._hwm)
            self.publish(self._hello_now())
        except BaseException:
            if sockets is not None:
                sockets.close(linger_ms=0)
            self.close()
            raise
        self.endpoints = sockets.endpoints
        self._thread = threading.Thread(target=self._run, args=(sockets,), name=f"bus-{self.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send what is queued, close the sockets, join the thread: within 3 s whatever the peers do. Harmless twice."""
        if self._forked:
            return
        self._stop = True
        self._outbox.wake()
        if self._thread is not None:
            self._thread.join(2.5)
            if self._thread.is_alive():
                log.warning("bus %s: the publisher thread hangs in a hook of the engine's; left behind", self.name)
                return
        if self.control_fd >= 0:
            self._outbox.close()
            os.close(self.control_fd)
            os.close(self._control_write_fd)
            self.control_fd = self._control_write_fd = -1

    def __enter__(self) -> Bus:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def t(self) -> float:
        """Time stamp for an event made now."""
        return self._event_clock.t()

    def publish(self, event: Event) -> None:
        """Queue an event; its ``seq`` is set on the way out. Never waits: with a full queue it is counted and gone."""
        if not self._forked:
            self._outbox.append(event)

    def wants(self, topic: str) -> bool:
        """Whether anybody subscribes to the topic, as far as the publisher thread has heard."""
        return topic in self._wanted

    def stage(self, name: str, step: int) -> None:
        """Say where the engine's loop is; the heartbeat passes it on. Costs a tuple."""
        self._stage = (name, step, self._clock.monotonic())

    def take_control(self) -> list[PendingControl]:
        """Changes that wait for the engine's loop, oldest first; each must be answered with ``reply``."""
        if self._forked or self.control_fd < 0:
            return []
        try:
            os.read(self.control_fd, 4096)
        except BlockingIOError:
            return []
        return self._desk.take()

    @property
    def dropped(self) -> int:
        """Events dropped before sending since boot."""
        return self._outbox.dropped

    # -- the publisher thread ---------------------------------------------------------------------------------------

    def _run(self, sockets: BusSockets) -> None:
        poller = zmq.Poller()
        for readable in (sockets.events, sockets.control, sockets.replay, self._outbox.wake_fd):
            poller.register(readable, zmq.POLLIN)
        next_beat = busy_until = 0.0
        try:
            while not self._stop:
                try:
                    now = time.monotonic()
                    if now >= next_beat:
                        self._beat()
                        next_beat = now + self._heartbeat_s
                    if self._drain(sockets):
                        busy_until = now + STAY_AWAKE_S
                    wait_ms = max(0, int((next_beat - time.monotonic()) * 1000) + 1)
                    if now < busy_until:
                        wait_ms = min(wait_ms, 0 if len(self._outbox) else NAP_MS)
                    elif not self._outbox.sleep():
                        wait_ms = 0
                    ready = dict(poller.poll(wait_ms))
                    self._outbox.awake()
                    if sockets.events in ready:
                        self._read_subscriptions(sockets.events)
                    if sockets.control in ready:
                        self._read_control(sockets.control)
                    if sockets.replay in ready:
                        self._read_replay(sockets.replay)
                except Exception as error:
                    # A bug here must not take the engine's eyes away for good.
                    self._complain(f"the publisher thread goes on after {type(error).__name__}: {error}", error)
                    time.sleep(0.1)
            self._desk.close()
            deadline = time.monotonic() + 1.0
            while len(self._outbox) and time.monotonic() < deadline:
                self._drain(sockets)
            self._send_replies(sockets.control)
        finally:
            sockets.close(CLOSE_LINGER_MS)

    def _drain(self, sockets: BusSockets) -> bool:
        """Encode, keep and send queued events, and the replies that are due; False when there were no events."""
        batch = self._outbox.take(SEND_BATCH)
        for topic, seq, event in batch:
            try:
                payload = encode_event(event, seq)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:
                self._complain(f"event of topic {topic} cannot be encoded and is dropped: {error}")
                self._outbox.spoil(topic, seq)
                continue
            self._replays.keep(topic, seq, payload)
            sockets.events.send_multipart(pack(topic, seq, payload), zmq.NOBLOCK)
        for topic, drops in self._outbox.take_drops().items():
            self._outbox.append(
                DropEvent(
                    boot_id=self.boot_id,
                    t=self.t(),
                    topic=topic,
                    first_seq=drops.first_seq,
                    count=drops.count,
                    total=self._outbox.dropped,
                )
            )
        self._send_replies(sockets.control)
        return bool(batch)

    def _beat(self) -> None:
        stage, seconds, step = self._where()
        self._outbox.append(
            HeartbeatEvent(
                boot_id=self.boot_id,
                t=self.t(),
                stage=stage,
                stage_s=seconds,
                step=step,
                last_seqs=self._outbox.last_seqs(),
                dropped=self._outbox.dropped,
            )
        )
        for loss in self._desk.take_losses():
            self._outbox.append(
                AlertEvent(
                    boot_id=self.boot_id,
                    step=step,
                    t=self.t(),
                    code="subscriber_loss",
                    level="warning",
                    message=f"{loss.who or 'a subscriber'} lost {loss.lost} {loss.topic} events between "
                    f"{loss.first} and {loss.last}: it reads too slowly, or its buffers are too small",
                    data=asdict(loss),
                )
            )

    def _read_subscriptions(self, socket: zmq.Socket[bytes]) -> None:
        while True:
            try:
                message = socket.recv_multipart(zmq.NOBLOCK)[0]
            except zmq.Again:
                break
            prefix = message[1:]
            if message[:1] == b"\x01":
                if prefix.startswith(WELCOME.encode()):
                    self._welcome(socket, prefix)
                else:
                    self._prefixes.add(prefix)
            elif message[:1] == b"\x00":
                self._prefixes.discard(prefix)
        self._wanted = frozenset(
            topic for topic in TOPICS if any(topic.encode().startswith(prefix) for prefix in self._prefixes)
        )

    def _welcome(self, socket: zmq.Socket[bytes], topic: bytes) -> None:
        """Tell one subscriber that this and its earlier subscriptions are in force, and what was sent before."""
        welcome = encode_payload(Welcome(boot_id=self.boot_id, last_seqs=self._replays.last_sent))
        socket.send_multipart([topic, bytes(8), welcome], zmq.NOBLOCK)

    def _read_control(self, socket: zmq.Socket[bytes]) -> None:
        for _ in range(SEND_BATCH):
            try:
                *envelope, payload = socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if envelope:
                self._desk.handle(payload, self._reply_to(envelope))

    def _reply_to(self, envelope: list[bytes]) -> Callable[[Reply], None]:
        def send(reply: Reply) -> None:
            with self._replies_lock:
                self._replies.append((envelope, reply))
            self._outbox.wake()

        return send

    def _send_replies(self, socket: zmq.Socket[bytes]) -> None:
        with self._replies_lock:
            replies, self._replies = self._replies, []
        for envelope, reply in replies:
            try:
                payload = encode(reply)
            except (TypeError, ValueError, msgspec.MsgspecError) as error:
                payload = encode(Refused(request_id=reply.request_id, code="internal", message=str(error)))
            send_to(socket, [*envelope, payload])

    def _read_replay(self, socket: zmq.Socket[bytes]) -> None:
        for _ in range(8):
            try:
                *envelope, payload = socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            if not envelope:
                continue
            for frames in self._replays.answer(payload):
                if not send_to(socket, [*envelope, *frames]):
                    break  # gone, or not reading: it will ask again

    def _complain(self, message: str, error: BaseException | None = None) -> None:
        """Log, but not so often as to fill the disk."""
        now = time.monotonic()
        if now - self._complained_at > COMPLAIN_EVERY_S:
            self._complained_at = now
            log.error("bus %s: %s", self.name, message, exc_info=error)

    # -- helpers ----------------------------------------------------------------------------------------------------

    def _hello_now(self) -> HelloEvent:
        return msgspec.structs.replace(self._hello(), last_seqs=self._outbox.last_seqs())

    def _where(self) -> tuple[str, float, int]:
        stage, step, since = self._stage
        return stage, max(0.0, self._clock.monotonic() - since), step

    def _control_waits(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._control_write_fd, b"!")
        if self._on_control is not None:
            self._on_control()

    def _after_fork_in_child(self) -> None:
        """The child owns neither the sockets nor the thread; it must not touch them, not even to close them."""
        self._forked = True


def _mark_forked() -> None:
    for bus in list(_buses):
        bus._after_fork_in_child()


os.register_at_fork(after_in_child=_mark_forked)
