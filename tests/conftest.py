"""What tests of every package may ask for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import torch

if not torch.cuda.is_available():
    # Before anything imports triton: kernels then are made for its interpreter (see engine/kernels/dispatch.py). Where
    # there is a GPU they are compiled, and tests/gpu compares them.
    os.environ.setdefault("TRITON_INTERPRET", "1")

if TYPE_CHECKING:
    from engine.models.checkpoint import TargetCheckpoint


@pytest.fixture(scope="session")
def default_target() -> TargetCheckpoint:
    """The default model, loaded once a session. A test that needs it fails without it: `make test` fetches it first."""
    from engine.models.checkpoint import load_target
    from engine.models.checkpoint_error import CheckpointError

    try:
        return load_target("smollm2-135m")
    except CheckpointError as error:
        pytest.fail(f"{error} (make test does)", pytrace=False)
