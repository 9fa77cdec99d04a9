"""The kernels' interpreter is asked for here too."""

from __future__ import annotations

from tests.engine.kernels.conftest import interpreted

__all__ = ["interpreted"]
