"""Python's garbage collector, which looks for reference cycles only, kept from holding up the screen."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def settle_heap() -> None:
    """Call once the program stands: what is there then stays, and is not looked through again.

    It is by far the most, and a search of all of it takes 50 ms and more, in which no key is answered.
    """
    gc.collect()
    gc.freeze()


@contextmanager
def collector_paused() -> Iterator[None]:
    """Around work that makes many objects and no cycles. Those dead at its end have then cost no search at all."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
