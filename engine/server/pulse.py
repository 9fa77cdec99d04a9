"""Listens to the engine's heartbeat on the bus, so that health tells a frozen engine from a busy one."""

from __future__ import annotations

import contextlib
import time

import zmq
import zmq.asyncio

from engine.server.engine_state import EngineState
from probes.events import HeartbeatEvent
from probes.wire import WireError, decode_event, unpack


async def follow_pulse(state: EngineState, events_endpoint: str) -> None:
    """Note every heartbeat of the boot that runs, for ever. The socket finds a restarted engine by itself."""
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.SUB)
    socket.set(zmq.LINGER, 0)
    socket.set(zmq.RECONNECT_IVL_MAX, 1000)
    socket.connect(events_endpoint)
    socket.subscribe(b"heartbeat")
    try:
        while True:
            frames = await socket.recv_multipart()
            with contextlib.suppress(WireError):  # another version's event is no heartbeat of ours
                event = decode_event(unpack(frames))
                if isinstance(event, HeartbeatEvent) and event.boot_id == state.boot_id:
                    state.last_beat, state.stage, state.stage_s = time.monotonic(), event.stage, event.stage_s
    finally:
        socket.close()
        context.destroy(linger=0)
