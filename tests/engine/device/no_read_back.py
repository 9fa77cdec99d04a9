"""Whether code would make the host wait for a device: what a launch may not do, and a CUDA graph cannot hold."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class _NoReadBack(TorchDispatchMode):
    """Fails on operations that give values to the host, or whose shapes depend on data."""

    NAMES = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "unique", "_unique")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert not any(name.startswith(banned) for banned in self.NAMES), f"{func} reads the device"
        if name in ("index", "index_put_", "index_put"):
            assert not any(i is not None and i.dtype == torch.bool for i in args[1]), f"{func} with a mask has to count"
        return func(*args, **(kwargs or {}))


@contextmanager
def no_read_back() -> Iterator[None]:
    """Within it nothing may wait for the device, nor a tensor become a number or a list of Python's."""

    def refuse(self: torch.Tensor, *args: Any) -> Any:
        raise AssertionError("a tensor is read")

    with pytest.MonkeyPatch.context() as patch, _NoReadBack():  # type: ignore[no-untyped-call]
        for name in ("tolist", "numpy", "item", "__int__", "__float__", "__index__", "__bool__"):
            patch.setattr(torch.Tensor, name, refuse)
        yield
