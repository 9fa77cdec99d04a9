"""What the tests of a served engine share; each file has a ``server`` of its own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.engine.server.server_under_test import ServerUnderTest


@pytest.fixture
def http(server: ServerUnderTest) -> Iterator[httpx.Client]:
    server.wait_ready()
    with server.client() as client:
        yield client
