"""The three addresses of a bus, and what must be true before one of them is bound.

The transport library unlinks whatever lies at an ipc path before it binds, be it a file of the user's or the socket of
a living engine. So paths are looked at first.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from probes.errors import ProbeError
from probes.runtime_dir import MAX_SOCKET_PATH

Role = Literal["events", "control", "replay"]
Listener = Literal["nothing", "stale", "live", "other"]


class EndpointError(ProbeError):
    """An endpoint that cannot or must not be bound."""


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Where the sockets of one bus are: ``ipc://PATH`` or ``tcp://HOST:PORT``."""

    events: str
    control: str
    replay: str

    @classmethod
    def in_dir(cls, directory: Path) -> Endpoints:
        """The default ones: unix sockets in an engine's directory."""
        return cls(
            events=f"ipc://{directory / 'events.sock'}",
            control=f"ipc://{directory / 'control.sock'}",
            replay=f"ipc://{directory / 'replay.sock'}",
        )

    def items(self) -> Iterator[tuple[Role, str]]:
        yield "events", self.events
        yield "control", self.control
        yield "replay", self.replay


def check_bindable(endpoints: Endpoints) -> None:
    """Refuse endpoints that clash, are open to the network, or whose paths are taken; remove stale sockets.

    Raises:
        EndpointError: naming the endpoint and its field.
    """
    seen: dict[str, Role] = {}
    for role, endpoint in endpoints.items():
        wildcard = endpoint.startswith("tcp://") and endpoint.rsplit(":", 1)[-1] in ("*", "0")
        if endpoint in seen and not wildcard:
            raise EndpointError(
                f"endpoints.{seen[endpoint]} and endpoints.{role} are both {endpoint}; each needs its own"
            )
        seen[endpoint] = role
        if endpoint.startswith("ipc://"):
            _check_path(role, endpoint)
        elif endpoint.startswith("tcp://"):
            _check_tcp(role, endpoint)
        else:
            raise EndpointError(f"endpoints.{role} is {endpoint!r}; expected ipc://PATH or tcp://HOST:PORT")


def ipc_path(endpoint: str) -> Path | None:
    """The path of an ipc endpoint; None for any other."""
    return Path(endpoint.removeprefix("ipc://")) if endpoint.startswith("ipc://") else None


def listener_at(path: Path) -> tuple[Listener, int | None]:
    """What is at a socket's path, and the pid that listens there, where the kernel tells.

    ``nothing``; ``stale``: a socket on which nobody listens; ``live``; ``other``: not a socket.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return "nothing", None
    if not stat.S_ISSOCK(mode):
        return "other", None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return "stale", None
        except FileNotFoundError:
            return "nothing", None
        except OSError:
            return "live", None  # backlog full, or no permission: somebody's, in any case
        return "live", _peer_pid(probe)


def remove_stale_socket(path: Path) -> bool:
    """Delete a socket on which nobody listens; leave anything else alone. True when the path is free now."""
    found, _ = listener_at(path)
    if found == "stale":
        path.unlink(missing_ok=True)
    return found in ("nothing", "stale")


def _check_path(role: Role, endpoint: str) -> None:
    path = Path(endpoint.removeprefix("ipc://"))
    size = len(os.fsencode(path))
    if not path.is_absolute():
        raise EndpointError(f"endpoints.{role} is {endpoint}: the path must be absolute")
    if size > MAX_SOCKET_PATH:
        raise EndpointError(
            f"endpoints.{role} is {endpoint}: its path has {size} bytes, and a unix socket's path may have "
            f"{MAX_SOCKET_PATH}; choose a shorter directory or engine name"
        )
    if not path.parent.is_dir():
        raise EndpointError(f"endpoints.{role} is {endpoint}: there is no directory {path.parent}")
    found, pid = listener_at(path)
    if found == "other":
        raise EndpointError(
            f"endpoints.{role} is {endpoint}: there is a file at that path which is not a socket, and it is left "
            f"alone; move it away or choose another path"
        )
    if found == "live":
        who = f"process {pid}" if pid else "another process"
        raise EndpointError(
            f"endpoints.{role} is {endpoint}: {who} listens there already; stop it, or start this engine under "
            f"another name"
        )
    remove_stale_socket(path)


def _check_tcp(role: Role, endpoint: str) -> None:
    host, separator, port = endpoint.removeprefix("tcp://").rpartition(":")
    if not separator or not (port == "*" or (port.isascii() and port.isdigit() and int(port) <= 65535)):
        raise EndpointError(f"endpoints.{role} is {endpoint}: expected tcp://HOST:PORT with a port up to 65535, or *")
    if not _is_loopback(host):
        raise EndpointError(
            f"endpoints.{role} is {endpoint}: beyond loopback anyone could read and steer this engine, and encrypted "
            f"TCP is not supported yet: use 127.0.0.1 and reach it with `ssh -L {port}:127.0.0.1:{port} THIS_HOST`"
        )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _peer_pid(connected: socket.socket) -> int | None:
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    pid: int = struct.unpack("3i", connected.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))[0]
    return pid or None
