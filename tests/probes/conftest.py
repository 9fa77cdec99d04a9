"""Real sockets in directories of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.endpoints import Endpoints


@pytest.fixture
def socket_dir() -> Iterator[Path]:
    """A private directory with a short path: tmp_path can be too long for a unix socket."""
    path = Path(tempfile.mkdtemp(prefix="sw-"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def endpoints(socket_dir: Path) -> Endpoints:
    return Endpoints.in_dir(socket_dir)


@pytest.fixture
def runtime(socket_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty XDG_RUNTIME_DIR; returns where specwb then puts its things."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_dir))
    return socket_dir / "specwb"
