"""Writes what a bus says into a recording: one channel a topic, marks beside, and nothing held back for long."""

from __future__ import annotations

import socket
import time
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path

from probes.clock import Clock
from probes.events import SCHEMA_VERSION, AlertEvent, Event, HelloEvent, KnobEvent, StepEvent, topic_of
from probes.subscriber import Gap, Malformed, Received, Restart
from probes.switches import SwitchCounter
from workbench.recording.channels import ALWAYS, CHANNELS, MESSAGE_ENCODING, SCHEMA_ENCODING, encode, schema_of
from workbench.recording.log_time import LogTime
from workbench.recording.mcap_sink import McapSink
from workbench.recording.reader import ABOUT, ENDED
from workbench.recording.request_tokens import without_tokens
from workbench.recording.side_records import SIDE_CHANNELS, MarkRecord, SideRecord, side_record, switch_mark


class RecordingWriter:
    """One recording. Any method may raise an OSError; then ``abandon`` leaves what is whole."""

    def __init__(
        self,
        path: Path,
        topics: Collection[str],
        *,
        note: str = "",
        clock: Clock | None = None,
        with_requests: bool = False,
    ) -> None:
        """Begin ``PATH.part``. ``with_requests``: prompts and answers are kept, as token ids, where the bus has them.

        Raises:
            RecordingError: it cannot be made; says why.
            ValueError: an unknown topic.
        """
        unknown = set(topics) - set(CHANNELS)
        if unknown:
            raise ValueError(f"unknown topic {min(unknown)!r}; the topics are {', '.join(CHANNELS)}")
        self._specwb = version("specwb")
        self._topics = [topic for topic in CHANNELS if topic in {*topics, *ALWAYS, *SIDE_CHANNELS}]
        self._note = note
        self._with_requests = with_requests
        self._time = LogTime(clock)
        self._switches = SwitchCounter()
        self._boot_id = ""
        self._step = 0
        self.events = 0
        """Events written, marks and the like not counted."""
        self.lost = 0
        """Events that were missed for good, or could not be read."""
        self.sink = McapSink(path, f"specwb {self._specwb}")
        self._channels = {
            topic: self.sink.channel(
                topic, MESSAGE_ENCODING, f"specwb.{CHANNELS[topic].__name__}", SCHEMA_ENCODING, schema_of(topic)
            )
            for topic in self._topics
        }

    def begin(self, hello: HelloEvent) -> None:
        """Say whose recording this is, and with which knobs it starts."""
        self._boot_id = hello.boot_id
        self.sink.metadata(
            ABOUT,
            {
                "specwb": self._specwb,
                "schema_version": str(max(SCHEMA_VERSION, hello.schema_version)),
                "engine": hello.name,
                "engine_version": hello.engine_version,
                "model": str(hello.model.get("name", "")),
                "boot_id": hello.boot_id,
                "host": socket.gethostname(),
                "started_at": str(time.time()),
                "topics": ",".join(topic for topic in self._topics if topic not in SIDE_CHANNELS),
                "note": self._note,
            },
        )
        self.write(hello)

    def write(self, item: Received) -> bool:
        """Take one item; True when it should be flushed at once."""
        match item:
            case Gap() | Restart() | Malformed():
                if isinstance(item, Restart):
                    self._boot_id = item.new_boot
                    self._switches.forget()
                elif isinstance(item, Malformed):
                    self.lost += 1
                elif not item.recovered:
                    self.lost += item.count
                self._side(side_record(item, self._boot_id))
                return True
            case _:
                return self._event(item)

    def bookmark(self, text: str) -> None:
        """Mark this place."""
        self._side(MarkRecord(boot_id=self._boot_id, kind="bookmark", step=self._step, text=text))

    def finish(self) -> None:
        """Write the summary and give the file its name. Raises OSError, or RecordingError when the name is taken."""
        self.sink.flush()
        counts = {"events": str(self.events), "lost": str(self.lost)}
        self.sink.metadata(ENDED, {"ended_at": str(time.time()), **counts})
        self.sink.finish()

    def _event(self, event: Event) -> bool:
        topic = topic_of(event)
        channel = self._channels.get(topic)
        if channel is None:
            return False
        if not self._with_requests:
            event = without_tokens(event)
        place = self._time.of(event.t, event.boot_id)
        self.sink.message(channel, place, round(event.t * 1e9), event.seq, encode(event))
        self.events += 1
        if isinstance(event, StepEvent):
            self._step = event.step
            if self._switches.see(event):
                self._side(switch_mark(event))
        return isinstance(event, KnobEvent | AlertEvent | HelloEvent)

    def _side(self, record: SideRecord) -> None:
        channel = self._channels[str(type(record).__struct_config__.tag)]
        self.sink.message(channel, self._time.last, self._time.last, 0, encode(record))
