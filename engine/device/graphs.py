"""CUDA graphs of the parts of a step, by part, batch size and shape.

A part is a *program*: a function that reads the device's state and static input buffers and leaves its results in
static output buffers. To replay its graph or to call it is then the same thing: a miss costs time and nothing else.

All graphs share one memory pool: they never run at the same time, and nothing in the pool outlives a replay.
"""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

log = logging.getLogger(__name__)

Program = Callable[[int], None]
"""Runs a part. Its argument bounds the keys that any request attends to: captured for the longest, called for the batch
at hand."""

Replay = Callable[[], None]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class GraphKey:
    """What a graph was captured for."""

    part: str
    """decode, draft, verify or settle."""
    batch: int
    """Requests, those that only pad included."""
    shape: tuple[int, ...]
    """The width of a decode or verify; steps, topk, width of a draft; width and longest path of a settle."""

    def __str__(self) -> str:
        return f"{self.part}/{self.batch}x{self.shape[-1] if self.part == 'draft' else self.shape[0]}"


class Recorder(Protocol):
    """Makes a program replayable."""

    memory: int
    """Bytes that the recordings hold."""

    def record(self, program: Program, bound: int) -> Replay:
        """Warm the program up and capture it. It runs, so its inputs must stand."""


class CudaRecorder:
    """Captures on one stream, which must not be the default one.

    By `capture_begin` itself: `torch.cuda.graph` would empty the allocator's cache before each capture, and the steps
    between which one is made would have to fill it again.
    """

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream
        self._pool = torch.cuda.graph_pool_handle()
        self.memory = 0

    def record(self, program: Program, bound: int) -> Replay:
        with torch.cuda.stream(self._stream):
            program(bound)  # compiles kernels, makes workspaces: neither may happen inside a capture
            self._stream.synchronize()
            free, _ = torch.cuda.mem_get_info(self._stream.device)
            graph = torch.cuda.CUDAGraph()
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                program(bound)
            finally:
                graph.capture_end()
            after, _ = torch.cuda.mem_get_info(self._stream.device)
        self.memory += max(0, free - after)
        return graph.replay


def ladder(largest: int) -> tuple[int, ...]:
    """Batch sizes to capture: dense where one more request is a large part of the step, and ``largest`` itself."""
    sizes = [1, 2, 3, 4, 6, 8, 12, *range(16, 64, 8), *range(64, 256, 16), *range(256, largest + 1, 32)]
    return tuple(sorted({size for size in sizes if size < largest} | {largest}))


class Source(Protocol):
    """Where programs come from."""

    def __call__(self, key: GraphKey) -> Program: ...

    def before_capture(self, key: GraphKey, bound: int) -> None:
        """What a program needs done on the host before it runs on nothing but padding."""


class GraphPool:
    """Runs programs, from a graph where one is captured."""

    def __init__(self, programs: Source, recorder: Recorder | None, batches: Sequence[int], bound: int) -> None:
        """``recorder``: None captures nothing. ``bound``: on the committed length of any request, ever."""
        self._programs = programs
        self._recorder = recorder
        self.batches = tuple(sorted(set(batches))) if recorder is not None else ()
        self.bound = bound
        self._graphs: dict[GraphKey, Replay] = {}
        self._missed: dict[GraphKey, None] = {}  # to capture, in order
        self._refused: set[GraphKey] = set()  # could not be captured while serving

    @property
    def captures(self) -> bool:
        return self._recorder is not None

    @property
    def memory(self) -> int:
        """Bytes that the graphs hold."""
        return self._recorder.memory if self._recorder is not None else 0

    @property
    def ready(self) -> tuple[GraphKey, ...]:
        """What is captured."""
        return tuple(self._graphs)

    def padded(self, batch: int) -> int:
        """The captured batch size that ``batch`` requests run in; their own number where there is none."""
        at = bisect_left(self.batches, batch)
        return self.batches[at] if at < len(self.batches) else batch

    def run(self, key: GraphKey, bound: int) -> bool:
        """Replay the key's graph, or call its program. Whether it was a graph; a miss is captured by `catch_up`."""
        replay = self._graphs.get(key)
        if replay is not None:
            replay()
            return True
        self._programs(key)(bound)
        if key.batch in self.batches and key not in self._refused:
            self._missed[key] = None
        return False

    @property
    def has_missed(self) -> bool:
        """Whether `catch_up` has something to capture."""
        return bool(self._missed)

    def catch_up(self) -> None:
        """Capture what was missed. Between steps only, with padding in the static inputs.

        A part that cannot be captured goes on being called, as in the step that missed it.
        """
        missed, self._missed = list(self._missed), {}
        for key in missed:
            try:
                self.capture(key)
            except RuntimeError:
                log.exception("no CUDA graph of %s; it runs kernel by kernel", key)
                self._refused.add(key)

    def capture(self, key: GraphKey) -> None:
        """Capture a key, unless it is there. The caller has put padding into the static inputs."""
        if self._recorder is not None and key not in self._graphs:
            self._programs.before_capture(key, self.bound)
            self._graphs[key] = self._recorder.record(self._programs(key), self.bound)

    def capture_all(self, keys: Sequence[GraphKey], progress: Progress) -> None:
        """Capture many, the largest batches first: the smaller ones then fit into memory that the pool has."""
        missing = [key for key in keys if key not in self._graphs] if self._recorder is not None else []
        missing.sort(key=lambda key: (-key.batch * max(key.shape), key.part, key.shape))
        said = 0.0
        for number, key in enumerate(missing, start=1):
            if time.monotonic() - said >= 1.0 or number == len(missing):
                progress(f"capturing CUDA graphs: {number} of {len(missing)} ({key})")
                said = time.monotonic()
            self.capture(key)
