"""Finding engines, holding names, and cleaning up after the dead."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from probes.discovery import (
    DiscoveryError,
    EngineRecord,
    NameClaim,
    claim_name,
    find_record,
    list_records,
    new_record,
    write_record,
)
from probes.endpoints import Endpoints
from probes.process import is_alive, start_time
from probes.runtime_dir import engine_dir


def record(name: str, **fields: object) -> EngineRecord:
    made = new_record(name, boot_id="b1", endpoints=Endpoints.in_dir(engine_dir(name)), model="tiny", state="ready")
    return msgspec.structs.replace(made, **fields)


def dead_pid() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_written_records_are_found(runtime: Path) -> None:
    written = [record("beta"), record("alpha")]
    for each in written:
        path = write_record(each)
        assert path.stat().st_mode & 0o777 == 0o600
    assert list_records() == sorted(written, key=lambda each: each.name)
    assert find_record("beta") == written[0]
    assert written[0].endpoints.events == f"ipc://{runtime}/beta/events.sock"
    (runtime / "beta" / "engine.json").unlink()
    assert find_record() == written[1]


def test_errors_say_what_there_is(runtime: Path) -> None:
    with pytest.raises(DiscoveryError, match="no engine is running; start one with `specwb serve`"):
        find_record()
    write_record(record("alpha"))
    with pytest.raises(DiscoveryError, match=r"no engine named 'beta' \(running: alpha\)"):
        find_record("beta")
    write_record(record("beta"))
    with pytest.raises(DiscoveryError, match="2 engines are running, say which one: alpha, beta"):
        find_record()


def test_dead_engines_leave_nothing(runtime: Path) -> None:
    """B91: the record, the sockets and the directory of a killed engine are removed by whoever looks."""
    write_record(record("gone", pid=dead_pid()))
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(runtime / "gone" / "events.sock"))
    assert [each.name for each in list_records(clean=False)] == []
    assert (runtime / "gone" / "engine.json").exists()
    assert list_records() == []
    assert list(runtime.iterdir()) == []


def test_recycled_pid_is_not_taken_for_the_engine(runtime: Path) -> None:
    """The number lives, but it is another process: its start time differs."""
    mine = start_time(os.getpid())
    assert mine is not None
    assert is_alive(os.getpid(), mine)
    write_record(record("old", start_time=mine - 1))
    assert list_records() == []


def test_record_of_another_machine_is_left_alone(runtime: Path) -> None:
    """A directory shared with a container: its pids say nothing here."""
    write_record(record("far", host="elsewhere.example", pid=dead_pid()))
    assert [each.name for each in list_records()] == ["far"]


def test_unreadable_record_is_cleaned_but_foreign_files_stay(runtime: Path) -> None:
    directory = engine_dir("odd")
    (directory / "engine.json").write_text("{half a rec")
    (directory / "events.sock").write_text("not a socket")
    assert list_records() == []
    assert [path.name for path in directory.iterdir()] == ["events.sock"]


def test_live_listener_survives_cleaning(runtime: Path) -> None:
    """An engine whose server died still listens: its socket is not pulled from under it."""
    write_record(record("orphan", pid=dead_pid()))
    path = runtime / "orphan" / "control.sock"
    with socket.socket(socket.AF_UNIX) as alive:
        alive.bind(str(path))
        alive.listen()
        list_records()
        assert path.exists()
        with pytest.raises(DiscoveryError, match="no engine named 'orphan'"):
            find_record("orphan")


def test_what_is_left_without_a_record_is_cleaned_too(runtime: Path) -> None:
    """B91: the server was killed, its record was cleaned while its engine still listened, then the engine left."""
    directory = engine_dir("killed")
    (directory / "start.json").write_text("{}")
    sockets = [directory / f"{role}.sock" for role in ("events", "control", "replay")]
    with socket.socket(socket.AF_UNIX) as alive, socket.socket(socket.AF_UNIX) as dead:
        alive.bind(str(sockets[0]))
        alive.listen()
        dead.bind(str(sockets[1]))
        dead.close()
        (directory / "notes.txt").write_text("somebody's")
        assert list_records(clean=False) == []
        assert len(list(directory.iterdir())) == 4
        assert list_records() == []
        assert sorted(path.name for path in directory.iterdir()) == ["events.sock", "notes.txt"]
    (directory / "notes.txt").unlink()
    assert list_records() == []
    assert list(runtime.iterdir()) == []


def test_a_name_that_is_held_is_not_cleaned_before_its_record_is_there(runtime: Path) -> None:
    with claim_name("young") as claim, socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(claim.directory / "events.sock"))
        (claim.directory / "start.json").write_text("{}")
        assert list_records() == []
        assert {path.name for path in claim.directory.iterdir()} == {"lock", "events.sock", "start.json"}


def test_taken_name_is_refused_and_names_the_process(runtime: Path) -> None:
    """B92: a second engine of the same name refuses; the first one's record stays."""
    with claim_name("main") as claim:
        written = record("main")
        write_record(written)
        with pytest.raises(DiscoveryError, match=rf"the name 'main' is taken: process {os.getpid()} serves it"):
            claim_name("main")
        assert list_records() == [written]
        assert claim.directory == runtime / "main"
    assert list(runtime.iterdir()) == []
    claim.release()
    claim_name("main").release()


def test_of_many_starting_at_once_one_wins(runtime: Path) -> None:
    """B92: however often it is tried."""

    def attempt(_: int) -> NameClaim | str:
        try:
            return claim_name("main")
        except DiscoveryError as error:
            return str(error)

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            outcomes = list(pool.map(attempt, range(8)))
            winners = [outcome for outcome in outcomes if isinstance(outcome, NameClaim)]
            refusals = {outcome for outcome in outcomes if isinstance(outcome, str)}
            assert len(winners) == 1
            assert len(refusals) == 1
            assert f"process {os.getpid()} serves it" in refusals.pop()
            winners[0].release()
    assert list(runtime.iterdir()) == []


def test_killed_holder_frees_the_name(runtime: Path) -> None:
    """B91: kill -9 the holder, 20 times: the next one has the name at once, and nothing is left over."""
    script = (
        "import sys, time; from probes.discovery import *; from probes.endpoints import Endpoints\n"
        "c = claim_name('main')\n"
        "write_record(new_record('main', boot_id='b', endpoints=Endpoints.in_dir(c.directory), model='m'))\n"
        "print('held', flush=True); time.sleep(600)"
    )
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(DiscoveryError, match=f"process {process.pid} serves it"):
            claim_name("main")
        process.kill()
        process.wait()
        process.stdout.close()
        for _ in range(7):
            claim_name("main").release()
    assert list(runtime.iterdir()) == []


def test_live_record_without_a_lock_still_holds_the_name(runtime: Path) -> None:
    """Somebody deleted the lock file: the record's process is alive, so the name is not free."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        written = record("main", pid=process.pid, start_time=start_time(process.pid))
        write_record(written)
        with pytest.raises(DiscoveryError, match=f"process {process.pid}"):
            claim_name("main")
        assert list_records() == [written]
    finally:
        process.communicate(b"\n")
