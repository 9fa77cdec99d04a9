"""The worker whose state stands on the device: a step is launched without anything being read back.

`DeviceWorker.prepare` comes once, before the first step: it captures the graphs.

A launch packs what only the host knows (which rows, new requests, grown page lists, prompt tokens) into one copy, then
runs the parts of the step in stream order: draft, run, accept, sync. Each part starts from device state that the part
or the step before left there, so step N + 1 can be launched while N runs. Results are copied to pinned memory behind
the step; `land` waits for that copy, and for nothing else.

The same code runs on the CPU, where every call waits for itself and there are no graphs: that is how it is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from engine.attention.backend import AttentionBackend, choose_backend
from engine.device.batches import StepBatches
from engine.device.buffers import Buffers
from engine.device.eagle3 import DeviceHead
from engine.device.first_calls import call_first
from engine.device.gpu_memory import GpuMemory
from engine.device.graphs import CudaRecorder, GraphPool, Progress, Recorder, ladder
from engine.device.launched import LaunchedStep, landed
from engine.device.llama import DeviceLlama
from engine.device.parts import Draft, Parts
from engine.device.programs import Programs, TreeShape, all_keys
from engine.device.row_table import RowTable
from engine.device.stages import Stages
from engine.device.state import RING_ROWS, DeviceState
from engine.device.timing import DeviceTimer
from engine.device.transfers import Downloads, Uploads
from engine.kv.ledger import KvLedger, Reservation
from engine.stage_clock import StepClock
from engine.step_plan import StepPlan
from engine.worker import Landed
from probes.knobs import DraftSync, KnobError, Knobs

ARENA = 1 << 15
"""Numbers that a step's copies have room for at first."""


class DeviceWorker:
    """Drafts, runs, accepts and syncs on one device, in one stream."""

    name = "device"
    even_widths = True

    def __init__(
        self,
        model: DeviceLlama,
        head: DeviceHead | None,
        ledger: KvLedger,
        attention: AttentionBackend,
        draft_attention: AttentionBackend | None = None,
        *,
        max_running: int,
        max_model_len: int,
        graphs: bool = True,
        graph_batch_sizes: Sequence[int] = (),
        simulate_accept: float | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        """Make pools, state and buffers; the models are on their device already.

        ``draft_attention``: for the head's shape; where it is missing or would plan on the host, one is chosen.
        ``graph_batch_sizes``: to capture, instead of a ladder up to ``max_running``. ``recorder``: what captures, in
        place of CUDA's own.

        Raises:
            ValueError: no attention can serve the head.
        """
        self.device = device = model.device
        self._ledger = ledger
        page_size = ledger.page_size
        draft = None
        if head is not None:
            if draft_attention is None or draft_attention.needs_lengths:  # nodes never stand on the host
                sizes = (head.shape.num_heads, head.shape.num_kv_heads, head.shape.head_dim)
                draft_attention, _ = choose_backend("auto", *sizes, head.dtype, device)
            draft = Draft.make(head, draft_attention, ledger.total, page_size, max_running)
        pool = model.make_pool(ledger.total, page_size)
        aux_width = len(draft.aux_layers) * model.shape.hidden_size if draft is not None else 0
        # With a verify in flight another one is reserved behind its furthest end.
        most = max_model_len + 2 * RING_ROWS
        state = DeviceState(
            max_running,
            ledger.pages_for(most),
            page_size,
            aux_width,
            head.shape.hidden_size if head is not None else 0,
            device,
            model.dtype,
            scrap_page=pool.scrap_page,
        )
        state.lens[state.pad_row] = 1  # so that padding, too, has a key to attend to
        self.parts = Parts(model, pool, attention, state, draft, simulate_accept)
        self._buffers = Buffers(
            max_running,
            model.shape.vocab_size,
            aux_width,
            model.dtype,
            device,
            state.pad_row,
            scrap_slot=pool.scrap_page * page_size,
        )
        self.programs = Programs(self.parts, self._buffers)
        self._stream: torch.cuda.Stream | None = None
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # weights and state are made on another stream
            self._stream = torch.cuda.Stream(device)
            if graphs and recorder is None and attention.graphs and (draft is None or draft.attention.graphs):
                recorder = CudaRecorder(self._stream)
        batches = [size for size in graph_batch_sizes if size <= max_running] or ladder(max_running)
        self.graphs = GraphPool(self.programs, recorder, batches, most)
        self.rows = RowTable(max_running, has_draft=draft is not None)
        self._uploads, self._downloads = Uploads(ARENA, device), Downloads(ARENA, device)
        self._timer = DeviceTimer(device)
        self._stages = Stages(self.parts, self._buffers, self.graphs, self._downloads, self._timer)

    # -- what the engine asks between steps -------------------------------------------------------------------------

    @property
    def algorithm(self) -> str | None:
        return "eagle3" if self.parts.draft is not None else None

    @property
    def aux_layers(self) -> tuple[int, ...]:
        return self.parts.aux_layers

    @property
    def needs_landed(self) -> bool:
        return self.parts.attention.needs_lengths

    @property
    def memory(self) -> dict[str, int]:
        """What -> bytes on the device, beside the weights."""
        parts, draft = self.parts, self.parts.draft
        sizes = {"target KV": parts.pool.bytes, "rows": parts.state.bytes, "buffers": self._buffers.bytes}
        if draft is not None:
            sizes["draft KV"] = draft.pool.bytes
        return sizes | {"CUDA graphs": self.graphs.memory}

    def check(self, knobs: Knobs) -> None:
        draft = self.parts.draft
        if knobs.draft_tokens > RING_ROWS:
            raise KnobError(
                f"draft_tokens={knobs.draft_tokens}: the device worker verifies at most {RING_ROWS} nodes a request; "
                f"set draft_tokens<={RING_ROWS}"
            )
        nodes = knobs.topk * (knobs.steps - 1)
        if nodes > RING_ROWS:
            raise KnobError(
                f"steps={knobs.steps} topk={knobs.topk}: the device worker expands at most {RING_ROWS} nodes, "
                f"topk * (steps - 1), got {nodes}; lower steps or topk"
            )
        if draft is not None and knobs.topk > draft.head.shape.draft_vocab_size:
            vocab = draft.head.shape.draft_vocab_size
            raise KnobError(f"topk={knobs.topk} is more than the draft's vocabulary, {vocab}; lower topk")
        need, free = self._buffers.more_bytes(knobs.draft_tokens), self._free_memory()
        if free is not None and need > free:
            ready = ", ".join(str(width) for width in self._buffers.widths if width > 1)
            raise KnobError(
                f"draft_tokens={knobs.draft_tokens} needs buffers of {need / 2**30:.1f} GiB on the GPU, "
                f"{free / 2**30:.1f} are free; ready: draft_tokens of {ready or 'none'}"
            )

    def forget(self, request_id: str) -> None:
        self.rows.forget(request_id)

    def lag(self, request_id: str) -> int:
        return self.rows.lag(request_id)

    def used_slots(self) -> int:
        return self.rows.written

    def debt_bytes(self) -> int:
        return self.parts.draft.row_bytes * self.rows.waiting if self.parts.draft is not None else 0

    @torch.inference_mode()
    def prepare(self, knobs: Knobs, progress: Progress = lambda message: None) -> None:
        """Capture what steps with these knobs run, for every batch size. Before the first step, or between steps."""
        shape = None
        if self.parts.draft is not None:
            shape = TreeShape(knobs.steps, knobs.topk, knobs.draft_tokens)
        with self._on_stream():
            self._buffers.pad()
            self.graphs.capture_all(all_keys(self.graphs.batches, shape), progress)
            if self.device.type == "cuda":
                try:
                    call_first(self.parts)
                except Exception as error:  # whatever it is: no start fails over what was only to save time later
                    progress(f"some kernels are compiled at their first use: {type(error).__name__}: {error}")

    # -- the step ---------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def launch(self, plan: StepPlan, reservation: Reservation, sync: DraftSync, clock: StepClock) -> LaunchedStep:
        """Start a step. Nothing is read from the device.

        Raises:
            RuntimeError: more requests than rows; or the attention needs lengths that are not exact.
        """
        clock.begin("draft" if plan.speculates else "run")
        try:
            with self._on_stream():
                return self._launch(plan, sync, clock)
        except Exception:
            self._buffers.displace()  # rows may stand nowhere
            raise

    def land(self, launched: LaunchedStep) -> Landed:
        """Wait until the device has run the step."""
        return landed(launched)

    def _launch(self, plan: StepPlan, sync: DraftSync, clock: StepClock) -> LaunchedStep:
        if self.graphs.has_missed:  # by a step that is launched: in stream order it has read its inputs
            self._buffers.pad()
            self.graphs.catch_up()
        self._timer.begin_step()
        self._timer.begin("draft" if plan.speculates else "run")
        self._uploads.turn()
        self._downloads.turn()
        batches = StepBatches(
            plan,
            sync,
            self.rows,
            self._ledger,
            self._buffers,
            self.graphs.padded,
            self.parts.state.pad_row,
            self._uploads,
        )
        self._uploads.send()
        step = self._stages.run(plan, batches, clock)
        step.marks = self._timer.end_step()
        self._uploads.hold(step.marks.end)
        self._downloads.hold(step.marks.end)
        batches.finish()
        return step

    def _free_memory(self) -> int | None:
        """Bytes on the device that could still be taken; None where that is no question."""
        return GpuMemory.of(self.device).free if self.device.type == "cuda" else None

    def _on_stream(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self._stream) if self._stream is not None else nullcontext()
