"""Kernels in Triton's interpreter, for the tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.kernels import dispatch


@pytest.fixture
def interpreted() -> Iterator[None]:
    """CPU tensors take the Triton kernels, interpreted."""
    if not dispatch.interpretable():
        pytest.skip("no triton, or this process compiles its kernels (a machine with CUDA): tests/gpu compares those")
    with dispatch.interpret():
        yield
