"""What tests of every package may ask for."""

from __future__ import annotations

import pytest

from engine.models.checkpoint import TargetCheckpoint, load_target
from engine.models.checkpoint_error import CheckpointError


@pytest.fixture(scope="session")
def default_target() -> TargetCheckpoint:
    """The default model, loaded once a session. A test that needs it fails without it: `make test` fetches it first."""
    try:
        return load_target("smollm2-135m")
    except CheckpointError as error:
        pytest.fail(f"{error} (make test does)", pytrace=False)
