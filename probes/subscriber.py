"""The workbench's end of the bus: events in order, and the truth about those that are missing.

Nothing is lost silently. A connection that is not up yet, a buffer that ran over, a cut cable and a restarted engine
all show in the numbers that every message carries: what the engine still keeps is fetched again, the rest is reported,
to the reader as a ``Gap`` and to the engine, which publishes an alert.
"""

from __future__ import annotations

import time
import uuid
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType

import zmq

from probes.clock import Clock, SystemClock
from probes.control import ControlClient, GapReport, describe_self, endpoints_of
from probes.discovery import EngineRecord
from probes.endpoints import Endpoints
from probes.events import TOPICS, Event, HeartbeatEvent, HelloEvent
from probes.replay_client import ReplayClient, runs
from probes.wire import WELCOME, Message, WireError, decode_event, decode_welcome, unpack

STALE_AFTER_S = 3.0
"""Heartbeats come once a second; without any for this long the engine is not to be believed alive."""

MAX_MESSAGES = 2000
"""Messages after which one poll returns, whatever else has arrived (a recovered gap may add to its items)."""

MAX_REPORTS = 100
"""Losses that wait to be reported to an engine that cannot be reached."""

INTERNAL = ("heartbeat", "hello")
"""Topics that every subscriber follows for itself, whether its reader asked for them or not."""


@dataclass(frozen=True)
class Gap:
    """Events ``first`` to ``last`` of a topic did not come by themselves."""

    topic: str
    first: int
    last: int
    recovered: bool
    """True: they were fetched and follow now, in their place. False: the engine no longer has them."""

    @property
    def count(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class Restart:
    """The engine has started anew; what follows is of the new boot, numbers from 1 again."""

    old_boot: str
    new_boot: str


@dataclass(frozen=True)
class Malformed:
    """A message that does not follow the format, said in words; it was skipped."""

    reason: str
    frames: int
    topic: str = ""
    seq: int | None = None


Received = Event | Gap | Restart | Malformed


class Subscriber:
    """Follows topics of one engine. Not thread-safe: one thread polls it."""

    def __init__(
        self,
        target: EngineRecord | Endpoints,
        topics: Iterable[str] = ("step", "request", "knob", "alert", "drop"),
        *,
        hwm: int = 2000,
        who: str = "",
        timeout: float = 5.0,
        clock: Clock | None = None,
    ) -> None:
        """Connect and ask the engine who it is: what it publishes from then on will come, or be reported missing.

        Args:
            hwm: messages buffered here before the engine's side starts to buffer, then to drop.
            who: name under which losses are reported.
            timeout: seconds to wait for the engine's answer.
            clock: for ``is_stale``; tests move it by hand.

        Raises:
            ControlTimeout: no engine answers there.
            ValueError: an unknown topic.
        """
        self.endpoints = endpoints_of(target)
        self._clock = clock or SystemClock()
        self._who = who or describe_self()
        self._topics: set[str] = set()
        self._next: dict[str, int] = {}  # topic -> number expected next; absent: whatever comes first
        self._old_news: dict[str, int] = {}  # topic -> newest number from before we came
        self._settled: set[str] = set()  # topics past the joining phase, where a gap is news
        self._welcome_topic = b""
        self._joined = False
        self._retired: deque[str] = deque(maxlen=16)  # boot ids of the past
        self._reports: deque[GapReport] = deque(maxlen=MAX_REPORTS)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.SUB)
        self._control = ControlClient(self.endpoints, timeout=timeout, who=self._who, context=self._context)
        self._replay = ReplayClient(self.endpoints.replay, self._context)
        try:
            for topic in topics:
                self._topics.add(_known(topic))
            self._connect(hwm)
            self._baseline(self._control.hello())
        except BaseException:
            self.close()
            raise

    hello: HelloEvent
    """The newest the engine has said about itself."""

    boot_id: str

    @property
    def topics(self) -> frozenset[str]:
        """Topics whose events ``poll`` returns."""
        return frozenset(self._topics)

    @property
    def hwm(self) -> int:
        """Messages buffered on this side, as in force."""
        return self._socket.getsockopt(zmq.RCVHWM)  # type: ignore[return-value]

    @property
    def is_joined(self) -> bool:
        """The engine has confirmed that all subscriptions are in force, for its present boot."""
        return self._joined

    @property
    def age(self) -> float:
        """Seconds since anything came from the engine, by the monotonic clock."""
        return max(0.0, self._clock.monotonic() - self._heard_at)

    @property
    def is_stale(self) -> bool:
        """No sign of life for three heartbeats; it recovers by itself when the engine does."""
        return self.age > STALE_AFTER_S

    def subscribe(self, topic: str) -> None:
        """Follow one more topic, from its next event on."""
        if _known(topic) not in self._topics:
            self._topics.add(topic)
            if topic not in INTERNAL:
                self._next.pop(topic, None)
                self._socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
                self._ask_for_welcome()

    def unsubscribe(self, topic: str) -> None:
        """Follow a topic no longer; events already on their way are thrown away."""
        if topic in self._topics:
            self._topics.discard(topic)
            self._settled.discard(topic)
            if topic not in INTERNAL:
                self._socket.setsockopt(zmq.UNSUBSCRIBE, topic.encode())

    def poll(self, timeout: float = 1.0) -> list[Received]:
        """What has arrived, in order; waits up to ``timeout`` seconds for the first item, and may return nothing.

        Fetching missed events may add some seconds when the engine does not answer.
        """
        deadline = time.monotonic() + timeout
        items: list[Received] = []
        while True:
            for _ in range(MAX_MESSAGES):
                try:
                    frames = self._socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                self._take(frames, items)
            self._send_reports()
            remaining = deadline - time.monotonic()
            if items or remaining <= 0:
                return items
            self._socket.poll(int(remaining * 1000) + 1)

    def recall(self, topic: str, count: int) -> list[Event]:
        """The newest ``count`` events of a topic from before this subscriber came, oldest first.

        Of those that the engine still keeps: some thousands. ``poll`` never returns them, and nothing about gaps
        changes. Nothing, once the engine has restarted: everything of its new boot comes by itself.

        Raises:
            ValueError: an unknown topic.
        """
        return self._replay.recall(self.boot_id, _known(topic), self._old_news.get(topic, 0), count)

    def close(self) -> None:
        """Give the sockets back; returns at once. Harmless twice."""
        self._control.close()
        self._context.destroy(linger=0)

    def __enter__(self) -> Subscriber:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -- connecting -------------------------------------------------------------------------------------------------

    def _connect(self, hwm: int) -> None:
        socket = self._socket
        socket.linger = 0
        socket.setsockopt(zmq.RCVHWM, hwm)  # before connect: it has no effect on a connection that exists
        socket.setsockopt(zmq.RECONNECT_IVL, 100)
        socket.setsockopt(zmq.RECONNECT_IVL_MAX, 1000)
        # A silently cut connection ends after this and is made anew.
        socket.setsockopt(zmq.HEARTBEAT_IVL, 1000)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 3000)
        socket.setsockopt(zmq.HANDSHAKE_IVL, 3000)
        for topic in {*self._topics, *INTERNAL}:
            socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
        self._ask_for_welcome()
        socket.connect(self.endpoints.events)

    def _ask_for_welcome(self) -> None:
        """Subscribe to a topic of our own, after the others: what comes there says that all of them are in force.

        It sorts last, too, which is the order in which the library repeats subscriptions after a reconnect.
        """
        self._joined = False
        if self._welcome_topic:
            self._socket.setsockopt(zmq.UNSUBSCRIBE, self._welcome_topic)
        self._welcome_topic = f"{WELCOME}{uuid.uuid4().hex}".encode()
        self._socket.setsockopt(zmq.SUBSCRIBE, self._welcome_topic)

    def _baseline(self, hello: HelloEvent) -> None:
        self.hello = hello
        self.boot_id = hello.boot_id
        self._old_news = hello.last_seqs
        self._heard_at = self._clock.monotonic()
        for topic in {*self._topics, *INTERNAL}:
            self._next[topic] = hello.last_seqs.get(topic, 0) + 1

    # -- one message ------------------------------------------------------------------------------------------------

    def _take(self, frames: list[bytes], items: list[Received]) -> None:
        message: Message | None = None
        try:
            message = unpack(frames)
            if message.topic.startswith(WELCOME):
                welcome = decode_welcome(message)
                if self._is_current(welcome.boot_id, items):
                    self._reveal(welcome.last_seqs, items)
                    self._settled.update(self._topics)
                    self._joined = True
                return
            if message.topic not in TOPICS:
                return  # a newer engine's: subscriptions are prefixes
            event = decode_event(message)
        except WireError as error:
            if message is None:
                items.append(Malformed(str(error), len(frames)))
            else:
                items.append(Malformed(str(error), len(frames), message.topic, message.seq))
                self._skip(message)
            return
        if not self._is_current(event.boot_id, items):
            return
        self._heard_at = self._clock.monotonic()
        if not self._arrive(message.topic, message.seq, items):
            return
        self._deliver(message.topic, event, items)
        if isinstance(event, HeartbeatEvent):
            self._reveal(event.last_seqs, items)

    def _is_current(self, boot_id: str, items: list[Received]) -> bool:
        """Whether a message is of the engine's present boot; turns over when it is of a new one."""
        if boot_id == self.boot_id:
            return True
        if boot_id in self._retired:
            return False
        self._retired.append(self.boot_id)
        items.append(Restart(self.boot_id, boot_id))
        self.boot_id = boot_id
        self._old_news = {}
        self._settled.clear()
        self._joined = False
        self._reports.clear()
        for topic in {*self._topics, *INTERNAL}:
            self._next[topic] = 1
        return True

    def _arrive(self, topic: str, seq: int, items: list[Received]) -> bool:
        """Move the topic's number on to ``seq``, filling what was left out; False when it has been seen before."""
        expected = self._next.get(topic, seq)
        if seq < expected:
            return False
        if seq > expected:
            self._fill(topic, expected, seq - 1, items)
        self._next[topic] = seq + 1
        self._settled.add(topic)
        return True

    def _skip(self, message: Message) -> None:
        """A message of ours that cannot be read has still arrived: the engine would send the same again."""
        expected = self._next.get(message.topic)
        if expected is not None and message.seq == expected:
            self._next[message.topic] = message.seq + 1

    def _reveal(self, last_seqs: dict[str, int], items: list[Received]) -> None:
        """Compare with what the engine had sent before this message: shows a lost tail."""
        for topic in sorted({*self._topics, *INTERNAL}):
            last = last_seqs.get(topic, 0)
            expected = self._next.setdefault(topic, last + 1)
            if last >= expected:
                self._fill(topic, expected, last, items)
                self._next[topic] = last + 1

    def _fill(self, topic: str, first: int, last: int, items: list[Received]) -> None:
        """Fetch what is missing; deliver what comes, report what does not."""
        if topic == "heartbeat" and topic not in self._topics:
            return
        joining = topic not in self._settled
        found = self._replay.fetch(self.boot_id, topic, first, last)
        expected = first
        for start, run in runs(found):
            if start > expected:
                self._lose(topic, expected, start - 1, items)
            expected = start + len(run)
            if not joining and topic in self._topics:
                items.append(Gap(topic, start, expected - 1, recovered=True))
            for message in run:
                try:
                    self._deliver(topic, decode_event(message), items)
                except WireError as error:
                    items.append(Malformed(str(error), 3, topic, message.seq))
        if expected <= last:
            self._lose(topic, expected, last, items)

    def _lose(self, topic: str, first: int, last: int, items: list[Received]) -> None:
        if topic in self._topics:
            items.append(Gap(topic, first, last, recovered=False))
            self._reports.append(GapReport(topic=topic, first=first, last=last, who=self._who, boot_id=self.boot_id))

    def _deliver(self, topic: str, event: Event, items: list[Received]) -> None:
        if isinstance(event, HelloEvent):
            self.hello = event
        if topic in self._topics:
            items.append(event)

    def _send_reports(self) -> None:
        while self._reports and self._control.notify(self._reports[0]):
            self._reports.popleft()


def _known(topic: str) -> str:
    if topic not in TOPICS:
        raise ValueError(f"unknown topic {topic!r}; the topics are {', '.join(TOPICS)}")
    return topic
