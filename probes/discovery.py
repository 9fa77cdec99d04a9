"""How a workbench finds engines: one directory an engine name, with a JSON record beside the sockets.

A name is held with a lock on a file, which the kernel lets go of when its holder dies however it dies. Records of dead
processes are cleaned by whoever finds them, and only under that lock, so a new engine of the same name is never hit.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal

import msgspec

from probes.endpoints import Endpoints, remove_stale_socket
from probes.errors import ProbeError
from probes.process import is_alive, start_time
from probes.runtime_dir import check_name, engine_dir, runtime_dir

RecordState = Literal["starting", "ready", "restarting"]

RECORD = "engine.json"
LOCK = "lock"
START = "start.json"
"""Start options, which an engine's server keeps beside its record."""


class DiscoveryError(ProbeError):
    """No such engine, several to choose from, or a name that is taken."""


class EngineRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is written about one engine, for this machine and user."""

    name: str
    pid: int
    """The process that owns the name: the server, which outlives restarts of its engine."""
    start_time: int | None
    """Start of that process, so that a recycled pid is not taken for it; see probes.process."""
    boot_id: str
    host: str
    http_url: str | None
    endpoints: Endpoints
    model: str
    started_at: float
    """Seconds since the epoch."""
    state: str
    """A ``RecordState``, or a newer server's word."""

    @property
    def is_live(self) -> bool:
        """Whether its process runs. A record from another machine or container cannot be checked and counts as live."""
        return self.host != socket.gethostname() or is_alive(self.pid, self.start_time)


def new_record(
    name: str,
    *,
    boot_id: str,
    endpoints: Endpoints,
    model: str,
    http_url: str | None = None,
    state: RecordState = "starting",
) -> EngineRecord:
    """A record owned by this process, with everything filled in that the machine knows."""
    return EngineRecord(
        name=name,
        pid=os.getpid(),
        start_time=start_time(os.getpid()),
        boot_id=boot_id,
        host=socket.gethostname(),
        http_url=http_url,
        endpoints=endpoints,
        model=model,
        started_at=time.time(),
        state=state,
    )


def write_record(record: EngineRecord) -> Path:
    """Write or replace an engine's record; a reader sees the old one or the new one, never half of one."""
    path = engine_dir(record.name) / RECORD
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_bytes(msgspec.json.format(msgspec.json.encode(record)))
    part.chmod(0o600)
    part.replace(path)
    return path


def list_records(clean: bool = True) -> list[EngineRecord]:
    """Engines that run, by name. ``clean``: remove what dead ones left behind, also where no record is left."""
    found: list[EngineRecord] = []
    for directory in sorted(path for path in runtime_dir().iterdir() if path.is_dir() and not path.is_symlink()):
        record = _read(directory / RECORD)
        if record is not None and record.is_live:
            found.append(record)
        elif clean:
            _clean(directory)
    return found


def find_record(name: str | None = None) -> EngineRecord:
    """The engine of that name; without a name the only one that runs.

    Raises:
        DiscoveryError: none, no such one, or several; says which there are or how to start one.
    """
    records = list_records()
    names = ", ".join(record.name for record in records)
    if name is not None:
        check_name(name)
        for record in records:
            if record.name == name:
                return record
        others = f"running: {names}" if records else "none is running"
        raise DiscoveryError(f"no engine named {name!r} ({others}); start it with `specwb serve --name {name}`")
    if not records:
        raise DiscoveryError("no engine is running; start one with `specwb serve`")
    if len(records) > 1:
        raise DiscoveryError(f"{len(records)} engines are running, say which one: {names}")
    return records[0]


class NameClaim:
    """A name held by this process until ``release`` or its death."""

    def __init__(self, name: str, directory: Path, fd: int) -> None:
        self.name = name
        self.directory = directory
        self._fd = fd
        self._pid = os.getpid()

    def release(self) -> None:
        """Forget the record, remove what nobody listens to, let the name go. Harmless twice, and in a forked child."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        if os.getpid() == self._pid:
            _empty(self.directory)
            _unlock(self.directory, fd)
        else:
            os.close(fd)

    def __enter__(self) -> NameClaim:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def claim_name(name: str) -> NameClaim:
    """Take a name for this process and clear what a dead holder left. A live one is never taken over.

    Raises:
        DiscoveryError: the name is taken; names the process.
    """
    deadline = time.monotonic() + 2.0
    while True:
        directory = engine_dir(name)
        fd = _lock(directory)
        if fd is not None:
            break
        holder = _holder(directory)
        # Without a live holder's pid in the lock it is held by someone who cleans up, or has only just been won.
        if holder is not None or time.monotonic() > deadline:
            by = f"process {holder}" if holder else "another process"
            raise DiscoveryError(
                f"the name {name!r} is taken: {by} serves it; choose another with --name, or stop that one"
            )
        time.sleep(0.005)
    record = _read(directory / RECORD)
    if record is not None and record.is_live and record.pid != os.getpid():
        os.close(fd)
        raise DiscoveryError(
            f"the name {name!r} is taken: process {record.pid} on {record.host} serves it; choose another with --name, "
            f"or stop that one"
        )
    _empty(directory)
    os.ftruncate(fd, 0)
    os.pwrite(fd, f"{os.getpid()} {start_time(os.getpid()) or 0}\n".encode(), 0)
    return NameClaim(name, directory, fd)


def _read(path: Path) -> EngineRecord | None:
    """A record, or None when it is gone or unreadable (which counts as left behind)."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=EngineRecord)
    except (OSError, msgspec.MsgspecError):
        return None


def _clean(directory: Path) -> None:
    """Remove a dead engine's leftovers, unless someone holds the name."""
    fd = _lock(directory)
    if fd is None:
        return
    record = _read(directory / RECORD)  # again, now that nobody else can write it
    if record is None or not record.is_live:
        _empty(directory)
        _unlock(directory, fd)
    else:
        os.close(fd)


def _lock(directory: Path) -> int | None:
    """A descriptor that holds the directory's lock; None when another one holds it (or the directory went away)."""
    path = directory / LOCK
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its holder may have deleted the file between our open and our lock: then the lock is worth nothing.
        if os.fstat(fd).st_ino == os.stat(path).st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def _unlock(directory: Path, fd: int) -> None:
    """Delete the lock while it is held, then let it go, then the directory if it is empty."""
    (directory / LOCK).unlink(missing_ok=True)
    os.close(fd)
    with suppress(OSError):
        directory.rmdir()


def _holder(directory: Path) -> int | None:
    """Pid of the live process that wrote itself into the lock."""
    try:
        pid, started = (int(word) for word in (directory / LOCK).read_text().split())
    except (OSError, ValueError):
        return None
    return pid if is_alive(pid, started or None) else None


def _empty(directory: Path) -> None:
    """Remove the record, the start options and every socket on which nobody listens; anything else stays."""
    for path in directory.glob("engine*.part"):
        path.unlink(missing_ok=True)
    for name in (RECORD, START):
        (directory / name).unlink(missing_ok=True)
    for path in directory.glob("*.sock"):
        remove_stale_socket(path)
