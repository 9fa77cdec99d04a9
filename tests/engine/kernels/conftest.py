"""Kernels in Triton's interpreter, for the tests that ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from engine.kernels import dispatch


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """CPU tensors take the Triton kernels, interpreted."""
    if not dispatch.interpretable():
        pytest.skip("no triton, or this process compiles its kernels (a machine with CUDA): tests/gpu compares those")
    let_loaded_numbers_bound_a_loop(monkeypatch)
    # numpy stands in for the GPU, which overflows without a word.
    with dispatch.interpret(), np.errstate(all="ignore"):
        yield


@pytest.fixture(params=["reference", "kernel"])
def implementation(request: pytest.FixtureRequest) -> None:
    """Both, one after the other."""
    if request.param == "kernel":
        request.getfixturevalue("interpreted")


def let_loaded_numbers_bound_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton 3.6 keeps a scalar as an array of one element, which numpy 2.4 no longer takes for a number."""
    from triton.runtime import interpreter

    patch_tensor = interpreter._patch_lang_tensor

    def patch_tensor_and_index(tensor: Any, scope: Any) -> None:
        patch_tensor(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_tensor_and_index)
