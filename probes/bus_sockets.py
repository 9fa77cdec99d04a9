"""The three sockets of a bus: bound together or not at all, closed without hanging, their files removed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import zmq

from probes.control import MAX_MESSAGE
from probes.endpoints import EndpointError, Endpoints, Role, check_bindable, ipc_path
from probes.replay_desk import REPLAY_BATCH

_KINDS: dict[Role, int] = {"events": zmq.XPUB, "control": zmq.ROUTER, "replay": zmq.ROUTER}


class BusSockets:
    """Bound by whoever makes the object; used and closed by one thread at a time."""

    def __init__(self, endpoints: Endpoints, *, hwm: int) -> None:
        """``hwm``: messages queued for one subscriber before it loses some.

        Raises:
            EndpointError: an endpoint cannot be bound; names it. Nothing stays bound then.
        """
        check_bindable(endpoints)
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._open: dict[Role, zmq.Socket[bytes]] = {}
        self._files: dict[Path, int] = {}  # path -> inode that we bound
        try:
            bound = {role: self._bind(role, endpoint, hwm) for role, endpoint in endpoints.items()}
        except BaseException:
            self.close(linger_ms=0)
            raise
        self.endpoints = Endpoints(**bound)
        """As bound: with the port that the system chose where a wildcard was asked for."""
        self.events, self.control, self.replay = (self._open[role] for role in ("events", "control", "replay"))

    def close(self, linger_ms: int) -> None:
        """Close all, giving unsent messages that long, and remove the files. Harmless twice."""
        for socket in self._open.values():
            socket.close(linger=linger_ms)
        self._context.term()
        for path, inode in self._files.items():
            with suppress(FileNotFoundError):
                if path.stat().st_ino == inode:  # else a successor has bound the path since
                    path.unlink()
        self._files.clear()

    def _bind(self, role: Role, endpoint: str, hwm: int) -> str:
        socket = self._context.socket(_KINDS[role])
        self._open[role] = socket
        socket.linger = 0
        socket.setsockopt(zmq.SNDHWM, hwm if role == "events" else 2 * REPLAY_BATCH)
        socket.setsockopt(zmq.MAXMSGSIZE, MAX_MESSAGE)
        socket.setsockopt(zmq.HEARTBEAT_IVL, 2000)
        socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, 10000)
        if role == "events":
            socket.setsockopt(zmq.XPUB_VERBOSE, 1)  # tell of every subscription, not only the first of its kind
        else:
            socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            raise EndpointError(
                f"cannot bind endpoints.{role} to {endpoint}: {error.strerror}; choose another address, or stop what "
                f"uses it"
            ) from error
        path = ipc_path(endpoint)
        if path is not None:
            self._files[path] = path.stat().st_ino
        return socket.getsockopt_string(zmq.LAST_ENDPOINT)


def send_to(router: zmq.Socket[bytes], frames: list[bytes]) -> bool:
    """Send through a ROUTER; False when that peer is gone or does not read."""
    try:
        router.send_multipart(frames, zmq.NOBLOCK)
    except zmq.ZMQError as error:
        if error.errno in (zmq.EAGAIN, zmq.EHOSTUNREACH):
            return False
        raise
    return True
