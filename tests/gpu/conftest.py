"""Tests that need a CUDA GPU: skipped without one, all run by ``make gpu-check``.

They import neither textual nor starlette, and use no pytest plugin: a GPU machine's own Python must do. Those of the
engine itself can be tried on the CPU, without graphs, by SPECWB_GPU_TESTS_DEVICE=cpu.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.gpu.engines import DEVICE

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skip(reason="needs a CUDA GPU")
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker("gpu")
            if DEVICE == "cuda" and not torch.cuda.is_available():
                item.add_marker(missing)
