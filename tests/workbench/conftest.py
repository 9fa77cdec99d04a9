"""A runtime directory of the test's own, and an engine in it that only talks."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.workbench.made_engine import MadeEngine

MakeEngine = Callable[..., MadeEngine]


@pytest.fixture(autouse=True)
def runtime_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Nothing of the user's is seen or touched. Not pytest's tmp_path: a unix socket's path must be short."""
    path = Path(tempfile.mkdtemp(prefix="wb"))
    path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(path / "cache"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def make_engine(runtime_dir: Path) -> Iterator[MakeEngine]:
    """Starts made engines; they end with the test."""
    with ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(MadeEngine(*args, **kwargs))


@pytest.fixture
def engine(make_engine: MakeEngine) -> MadeEngine:
    """One made engine named ``made``."""
    return make_engine()
