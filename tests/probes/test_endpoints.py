"""What may be bound."""

from __future__ import annotations

import socket
from pathlib import Path

import msgspec
import pytest

from probes.endpoints import EndpointError, Endpoints, check_bindable, listener_at


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ("tcp://0.0.0.0:5555", "not supported yet: use 127.0.0.1 and reach it with `ssh -L 5555"),
        ("tcp://*:5555", "beyond loopback"),
        ("tcp://192.168.1.5:5555", "beyond loopback"),
        ("tcp://example.org:5555", "beyond loopback"),
        ("tcp://127.0.0.1", "expected tcp://HOST:PORT"),
        ("tcp://127.0.0.1:70000", "port up to 65535"),
        ("udp://127.0.0.1:1", "expected ipc://PATH or tcp://HOST:PORT"),
        ("ipc://relative.sock", "must be absolute"),
        ("ipc:///does/not/exist/x.sock", "there is no directory /does/not/exist"),
        ("ipc:///tmp/" + "x" * 100, "may have 103"),
    ],
)
def test_refused_with_a_reason(endpoints: Endpoints, endpoint: str, words: str) -> None:
    with pytest.raises(EndpointError, match=r"endpoints\.replay is") as caught:
        check_bindable(msgspec.structs.replace(endpoints, replay=endpoint))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "endpoint", ["tcp://127.0.0.1:5555", "tcp://127.8.8.8:*", "tcp://[::1]:1", "tcp://localhost:9"]
)
def test_loopback_is_fine(endpoints: Endpoints, endpoint: str) -> None:
    check_bindable(msgspec.structs.replace(endpoints, replay=endpoint))


def test_two_roles_on_one_address(endpoints: Endpoints) -> None:
    """B93: the same address for two sockets names both."""
    with pytest.raises(EndpointError, match=r"endpoints\.events and endpoints\.control are both ipc://"):
        check_bindable(msgspec.structs.replace(endpoints, control=endpoints.events))


def test_what_is_at_a_path(socket_dir: Path) -> None:
    path = socket_dir / "s.sock"
    assert listener_at(path)[0] == "nothing"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        assert listener_at(path)[0] == "stale"
        listener.listen()
        assert listener_at(path)[0] == "live"
    assert listener_at(path)[0] == "stale"
    path.unlink()
    path.write_text("")
    assert listener_at(path)[0] == "other"
