"""Numbers on their way between host and device, without the host ever waiting for a copy.

Copies to and from pinned memory return at once and run in stream order. The memory must not be touched before they ran,
so each direction has a ring of arenas, one a step: an arena comes round again `DEPTH` steps later, and is then guarded
by the event of the step that used it. On the CPU a copy is made on the spot, and every arena is free at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

DEPTH = 4
"""Arenas of a ring. With overlap two steps are in flight at most; the others spare their guards the wait."""

Numbers = Sequence[int] | npt.NDArray[np.int64]


class _Arena:
    """Pinned int64 memory of one step."""

    def __init__(self, size: int, pinned: bool) -> None:
        self.memory = torch.empty(size, dtype=torch.int64, pin_memory=pinned)
        self.numbers: npt.NDArray[np.int64] = self.memory.numpy()
        self.guard: torch.cuda.Event | None = None  # of the step that used it last

    def wait(self) -> None:
        if self.guard is not None:
            self.guard.synchronize()
            self.guard = None


class _Ring:
    def __init__(self, size: int, device: torch.device) -> None:
        self.device = device
        self.pinned = device.type == "cuda"
        self._arenas = [_Arena(size, self.pinned) for _ in range(DEPTH)]
        self._at = 0
        self.arena = self._arenas[0]
        self.used = 0

    def turn(self) -> None:
        """Take the next arena, once its own step is through."""
        self._at = (self._at + 1) % DEPTH
        self.arena = self._arenas[self._at]
        self.arena.wait()
        self.used = 0

    def hold(self, event: torch.cuda.Event | None) -> None:
        """The arena's copies are through when ``event`` is."""
        self.arena.guard = event

    def room(self, count: int) -> slice:
        """Place for ``count`` more numbers; the arena is replaced by a larger one where it is too small."""
        if self.used + count >= self.arena.memory.numel():
            larger = _Arena(2 * (self.used + count), self.pinned)
            larger.numbers[: self.used] = self.arena.numbers[: self.used]
            self._arenas[self._at] = self.arena = larger  # views of the old one, and copies into it, keep it alive
        place = slice(self.used, self.used + count)
        self.used += count + count % 2  # pieces stay 16 bytes aligned: kernels are compiled for that apart
        return place


class Uploads(_Ring):
    """Packs all that a step tells the device into one copy: ``put`` everything, ``send``, then ``take`` the pieces."""

    _sent: torch.Tensor

    def put(self, numbers: Numbers) -> slice:
        """Pack int64 numbers; the ticket to `take` them by."""
        place = self.room(len(numbers))
        self.arena.numbers[place] = numbers
        return place

    def put_floats(self, numbers: Sequence[float]) -> slice:
        """Pack float64 numbers, for `take_floats`."""
        return self.put(np.array(numbers, dtype=np.float64).view(np.int64))

    def send(self) -> None:
        """Start the copy of everything packed since `turn`, if anything was."""
        if not self.used:
            return
        packed = self.arena.memory[: self.used]
        if self.pinned:
            self._sent = torch.empty(self.used, dtype=torch.int64, device=self.device)
            self._sent.copy_(packed, non_blocking=True)
        else:
            self._sent = packed.to(self.device, copy=True)

    def take(self, place: slice) -> torch.Tensor:
        """int64 [n], on the device."""
        return self._sent[place]

    def take_floats(self, place: slice) -> torch.Tensor:
        """float64 [n], on the device."""
        return self._sent[place].view(torch.float64)


class Downloads(_Ring):
    """Copies results to the host. What `fetch` returns may be read when the step's event is through, and until the
    ring has come round: a step lands long before."""

    def fetch(self, tensor: torch.Tensor) -> torch.Tensor:
        """Start the copy of a contiguous tensor of 4- or 8-byte numbers; the host's view of it, of the same shape."""
        place = self.room(-(-tensor.nbytes // 8))
        host = self.arena.memory[place].view(tensor.dtype)[: tensor.numel()].view(tensor.shape)
        host.copy_(tensor, non_blocking=self.pinned)
        return host
