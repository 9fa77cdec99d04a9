"""One step on the device, stage by stage: everything is put into the stream, nothing comes back."""

from __future__ import annotations

from engine.device.batches import DecodeBatch, StepBatches
from engine.device.buffers import Buffers
from engine.device.graphs import GraphKey, GraphPool
from engine.device.launched import LaunchedStep
from engine.device.logprobs import StepLogprobs
from engine.device.parts import Parts
from engine.device.prefill import PrefillBatch
from engine.device.programs import TreeShape, plain_keys
from engine.device.sampling import draw_sampled
from engine.device.timing import DeviceTimer
from engine.device.transfers import Downloads
from engine.kernels.walk import WalkBuffers
from engine.stage_clock import StepClock
from engine.step_plan import StepPlan
from probes.events import StepShapes


class Stages:
    """Runs prepared batches through draft, run, accept and sync."""

    def __init__(
        self, parts: Parts, buffers: Buffers, graphs: GraphPool, downloads: Downloads, timer: DeviceTimer
    ) -> None:
        self._parts = parts
        self._buffers = buffers
        self._graphs = graphs
        self._downloads = downloads
        self._timer = timer

    def run(self, plan: StepPlan, batches: StepBatches, clock: StepClock) -> LaunchedStep:
        """Launch the step. ``batches`` are sent."""
        parts, draft, state = self._parts, self._parts.draft, self._parts.state
        plain, tree, prefill = batches.plain, batches.tree, batches.prefill
        shape = TreeShape(plan.choice.steps, plan.choice.topk, tree.width) if tree is not None else None
        batches.writes.run(state)
        for batch in batches.decodes:
            batch.place()
        ran = _Ran(self._graphs)
        if tree is not None and shape is not None:  # the clock and the timer are in the draft stage
            if batches.behind and draft is not None:
                batches.behind.run(draft, state)
            grow, verify, settle = shape.keys(tree.padded)
            ran.part(grow, tree)
            self._begin("run", clock)
            self._plan_attention(tree)
            ran.part(verify, tree, names=True)
        if plain is not None:
            self._plan_attention(plain)
            if prefill is None:
                ran.part(plain_keys(plain.padded)[0], plain, names=tree is None)
        if prefill is not None:
            self._timer.begin("prefill")
            if plain is None:
                prefill.run(parts)
            else:
                prefill.run_beside(parts, plain.buffers, plain.padded, self._longest(plain))
        self._begin("accept", clock)
        drawn = walks = None
        if tree is not None and shape is not None:
            self._draw_sampled(tree)
            ran.part(settle, tree)
            walks = self._buffers.of_paths(tree.width, shape.longest).walks
        if plain is not None:
            self._draw_sampled(plain)
            drawn = plain.buffers.drawn[: plain.padded]
            ran.part(plain_keys(plain.padded)[1], plain, forward=prefill is None)
        if prefill is not None:
            prefill.accept(parts)
        logprobs = self._logprobs(plain, tree, walks, prefill)
        clock.begin("sync")
        if draft is not None and (batches.due or prefill is not None):
            self._timer.begin("sync")
            if prefill is not None:
                prefill.sync(draft, parts)
            if batches.due:
                batches.due.run(draft, state)
        fetch = self._downloads.fetch
        return LaunchedStep(
            plan=plan,
            locs=[fetch(batch.buffers.loc[: batch.padded]) for batch in batches.decodes],
            scrap_slot=parts.pool.scrap_page * state.page_size,
            prompt_slots=prefill.written if prefill is not None else 0,
            shapes=self._shapes(batches),
            graph=ran.graph,
            graph_hit=ran.is_hit,
            plain=(plain, fetch(drawn)) if plain is not None and drawn is not None else None,
            tree=(tree, self._fetch_walks(tree, shape)) if tree is not None and shape is not None else None,
            chunks=list(zip(prefill.chunks, prefill.rows, strict=True)) if prefill is not None else [],
            drawn=fetch(prefill.drawn) if prefill is not None and prefill.drawn is not None else None,
            caught_up=[batches.behind, batches.due],
            logprobs=logprobs,
        )

    def _longest(self, batch: DecodeBatch) -> int:
        """The bound of a forward without a graph: that of the graphs, if any, since kernels are compiled for it."""
        return self._graphs.bound if self._graphs.captures else batch.bound

    def _begin(self, stage: str, clock: StepClock) -> None:
        clock.begin(stage)
        self._timer.begin(stage)

    def _fetch_walks(self, tree: DecodeBatch, shape: TreeShape) -> WalkBuffers:
        paths = self._buffers.of_paths(tree.width, shape.longest)
        return paths.views(self._downloads.fetch(paths.block))

    def _draw_sampled(self, batch: DecodeBatch) -> None:
        sampled = batch.sampled
        if sampled is not None:
            draw_sampled(self._parts, batch.buffers, batch.padded, sampled)

    def _plan_attention(self, batch: DecodeBatch) -> None:
        """Tell attention that plans on the host what the batch is; it cannot without exact lengths."""
        if not self._parts.attention.needs_lengths:
            return
        inexact = [row for row in batch.decodes if row.start_min != row.start_max]
        if inexact:
            row = inexact[0]
            raise RuntimeError(
                f"attention {self._parts.attention.name} needs exact lengths; {row.request.request_id} begins the step "
                f"with {row.start_min} to {row.start_max} tokens: land the step in flight first"
            )
        self._parts.attention.plan(
            [row.start_min for row in batch.decodes],
            batch.pages,
            width=batch.width,
            bucket=batch.padded,
            page_size=self._parts.state.page_size,
            bound=self._graphs.bound + batch.width,
        )

    def _logprobs(
        self,
        plain: DecodeBatch | None,
        tree: DecodeBatch | None,
        walks: WalkBuffers | None,
        prefill: PrefillBatch | None,
    ) -> StepLogprobs:
        """For the requests that asked: from the nodes that their emitted tokens were drawn at."""
        reports, downloads = StepLogprobs(), self._downloads
        if plain is not None:
            for at, count in plain.asked:
                logits, drawn = plain.buffers.logits[at : at + 1], plain.buffers.drawn[at]
                reports.add(plain.rows[at].request.request_id, logits, drawn, count, downloads)
        if tree is not None and walks is not None:
            for at, count in tree.asked:
                nodes = tree.buffers.logits[at * tree.width : (at + 1) * tree.width]
                logits = nodes[walks.path[at].long()]
                reports.add(tree.rows[at].request.request_id, logits, walks.emitted[at], count, downloads)
        if prefill is not None and prefill.logits is not None and prefill.drawn is not None:
            for at, request in enumerate(prefill.chunks[i].request for i in prefill.finals):
                wanted = request.sampling.logprobs
                if wanted is not None:
                    logits, drawn = prefill.logits[at : at + 1], prefill.drawn[at : at + 1]
                    reports.add(request.request_id, logits, drawn, wanted, downloads)
        return reports

    def _shapes(self, batches: StepBatches) -> StepShapes:
        """Shapes of the tensors that the target's forwards got, padding included."""
        prefill = batches.prefill
        locs = [batch.buffers.loc[: batch.padded] for batch in batches.decodes]
        slots = sum(loc.numel() for loc in locs) + (prefill.written if prefill is not None else 0)
        widest = batches.decodes[-1] if batches.decodes else None
        aux_layers = self._parts.aux_layers
        return StepShapes(
            input_ids=[slots],
            seq_lens=[sum(loc.shape[0] for loc in locs) + (len(prefill.chunks) if prefill is not None else 0)],
            extend_lens=prefill.lengths if prefill is not None else [],
            out_cache_loc=[slots],
            hidden_states=[slots, len(aux_layers) * self._parts.model.shape.hidden_size] if aux_layers else [],
            padded_bucket=[widest.padded, widest.width] if widest is not None and self._graphs.captures else [],
        )


class _Ran:
    """Runs the parts of a step that can be graphs, and remembers whether all of them were."""

    def __init__(self, graphs: GraphPool) -> None:
        self._graphs = graphs
        self.graph: str | None = None
        self.is_hit: bool | None = None

    def part(self, key: GraphKey, batch: DecodeBatch, *, names: bool = False, forward: bool = True) -> None:
        """``names``: the step goes by this part. ``forward``: the target's forward looks for a graph too; of a step
        whose forward does not, only a miss is told, by the part's own key."""
        hit = self._graphs.run(key, batch.bound)
        if not self._graphs.captures or (hit and not forward):
            return
        self.is_hit = hit and self.is_hit is not False
        if names or not forward:
            self.graph = str(key)
