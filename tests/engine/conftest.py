"""Fixtures of the engine's tests."""

from __future__ import annotations

import pytest

from tests.engine.tiny import VARIANT


@pytest.fixture(params=["sync", "overlap"])
def scheduler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Tiny engines run under this scheduler; `tests.engine.tiny.both_schedulers` asks for it by module."""
    name: str = request.param
    monkeypatch.setitem(VARIANT, "scheduler", name)
    return name
