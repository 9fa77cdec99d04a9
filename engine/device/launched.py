"""A step that was launched, and how its results become the host's when it lands."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from engine.accepted import Accepted
from engine.device.batches import DecodeBatch
from engine.device.catch_up import CatchUp
from engine.device.logprobs import StepLogprobs
from engine.device.row_table import Row
from engine.device.timing import StepMarks
from engine.kernels.walk import WalkBuffers
from engine.spec.verify import Walk
from engine.step_plan import PrefillChunk, StepPlan
from engine.worker import Landed
from probes.events import StepShapes

WRITTEN_BY = "engine.device.launched:LaunchedStep.slots_written"
"""Where the slots are counted that the device says it wrote."""


@dataclass
class LaunchedStep:
    """What `land` needs. Tensors are on the host, and hold their values once the step's end is reached."""

    plan: StepPlan
    locs: list[torch.Tensor]  # int64 [padded, width]: the slots that each forward of decodes wrote
    scrap_slot: int  # from here on slots are padding's
    prompt_slots: int  # written by the forward of prefill chunks
    shapes: StepShapes
    graph: str | None
    graph_hit: bool | None
    plain: tuple[DecodeBatch, torch.Tensor] | None  # with the tokens drawn, int64 [B, 1]
    tree: tuple[DecodeBatch, WalkBuffers] | None
    chunks: list[tuple[PrefillChunk, Row]]
    drawn: torch.Tensor | None  # int64 [chunks that end their prompt]
    caught_up: list[CatchUp]
    logprobs: StepLogprobs
    marks: StepMarks = field(default_factory=lambda: StepMarks(None))

    def slots_written(self) -> int:
        """Slots that requests own and the forwards wrote, by what the device worked out; once the end is reached."""
        return self.prompt_slots + sum(int((loc < self.scrap_slot).sum()) for loc in self.locs)


def landed(step: LaunchedStep) -> Landed:
    """Wait for the step's end and hand out its results; the rows' accounts follow."""
    if step.marks.end is not None:
        step.marks.end.synchronize()
    entries: list[Accepted | None] = [None] * len(step.plan.requests)
    if step.plain is not None:
        batch, drawn = step.plain
        for place, row, token in zip(batch.places, batch.rows, drawn.view(-1).tolist(), strict=False):
            entries[place] = Accepted(row.request, 1, Walk([0], [token]))
            row.push(1)
    if step.tree is not None:
        batch, walks = step.tree
        kept, path, emitted = walks.kept.tolist(), walks.path.tolist(), walks.emitted.tolist()
        for at, (place, row) in enumerate(zip(batch.places, batch.rows, strict=True)):
            count = kept[at]
            entries[place] = Accepted(row.request, batch.width, Walk(path[at][:count], emitted[at][:count]))
            row.write(count, waited=False)
    tokens = iter(step.drawn.tolist() if step.drawn is not None else [])
    for place, (chunk, row) in enumerate(step.chunks, start=len(step.plan.decodes)):
        walk = Walk(list(range(chunk.length)), [next(tokens)] if chunk.is_last else [])
        entries[place] = Accepted(chunk.request, 0, walk)
        row.write(chunk.length, waited=False)
    for catch_up in step.caught_up:
        for row, count in catch_up.waiting:
            row.write(count, waited=True)
    return Landed(
        entries=[entry for entry in entries if entry is not None],
        slots_written=step.slots_written(),
        written_by=WRITTEN_BY,
        shapes=step.shapes,
        graph=step.graph,
        graph_hit=step.graph_hit,
        gpu_us=step.marks.stages_us(),
        logprobs=step.logprobs.of,
    )
