"""Every kernel compiles for the GPU that it is for, which the interpreter cannot say."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="no triton here")
def test_every_kernel_compiles_for_an_h200(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "tests.engine.kernels.ahead_of_time"]
    environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
