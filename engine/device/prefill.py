"""Prefill chunks of several requests as one ragged batch, eager: their sizes are never twice the same.

The plain decodes of a mixed step run along in the same forward.

Everything about a chunk is exact on the host, so the batch is built there: tokens, positions, where each chunk begins.
Only the slots come from the page table on the device, and the drawn token stays there: it is the state's newest token
and the draft's last input at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from engine.attention.backend import ExtendBatch
from engine.device.buffers import WidthBuffers
from engine.device.parts import Draft, Parts, extending
from engine.device.row_table import Row
from engine.device.sampling import draw, is_filtered
from engine.device.target import FlatRows, decode_rows
from engine.device.transfers import Uploads
from engine.kernels.argmax import greedy
from engine.step_plan import PrefillChunk


@dataclass(frozen=True)
class _Tickets:
    ids: slice
    next_ids: slice
    positions: slice
    token_rows: slice  # row of the state of each token
    rows: slice
    starts: slice
    stops: slice
    cu_q: slice
    last_tokens: slice  # token index of the end of each chunk
    finals: slice  # which chunks end their prompt
    sampled: slice  # which of the finals sample


class PrefillBatch:
    """The chunks of one step."""

    def __init__(
        self, chunks: Sequence[PrefillChunk], rows: Sequence[Row], pages: Sequence[list[int]], uploads: Uploads
    ) -> None:
        """Put the batch into the upload. ``rows`` and ``pages`` (each request's page list): one a chunk."""
        self.chunks = chunks
        self.lengths = [chunk.length for chunk in chunks]
        self.tokens = sum(self.lengths)
        self.finals = [i for i, chunk in enumerate(chunks) if chunk.is_last]
        """Chunks that end their prompt: each draws a token, in this order."""
        self.rows, self._pages = rows, pages
        params = [chunks[i].request.sampling for i in self.finals]
        sampled = [i for i, p in enumerate(params) if not p.greedy]
        self._is_filtered = is_filtered([params[i] for i in sampled])
        self._samples = bool(sampled)
        ids: list[int] = []
        next_ids: list[int] = []
        for chunk in chunks:
            prompt, stop = chunk.request.ids, chunk.start + chunk.length
            ids += prompt[chunk.start : stop]
            # Position t of the draft reads token t + 1; behind the prompt's end that is drawn later.
            next_ids += prompt[chunk.start + 1 : stop] + [0 if chunk.is_last else prompt[stop]]
        starts = np.array([chunk.start for chunk in chunks], dtype=np.int64)
        lengths = np.array(self.lengths, dtype=np.int64)
        ends = lengths.cumsum()  # in the flat batch
        indices = np.array([row.index for row in rows], dtype=np.int64)
        self._tickets = _Tickets(
            ids=uploads.put(ids),
            next_ids=uploads.put(next_ids),
            positions=uploads.put(np.arange(self.tokens, dtype=np.int64) + (starts - ends + lengths).repeat(lengths)),
            token_rows=uploads.put(indices.repeat(lengths)),
            rows=uploads.put(indices),
            starts=uploads.put(starts),
            stops=uploads.put(starts + lengths),
            cu_q=uploads.put([0, *ends.tolist()]),
            last_tokens=uploads.put(ends - 1),
            finals=uploads.put(self.finals),
            sampled=uploads.put(sampled),
        )
        self._uploads = uploads
        self.logits: torch.Tensor | None = None  # [finals, vocab], after `run`
        self.aux: torch.Tensor | None = None  # [tokens, aux width]
        self.drawn: torch.Tensor | None = None  # int64 [finals], after `accept`
        self.written = 0  # rows whose K and V the forward wrote

    def flat_rows(self, parts: Parts) -> FlatRows:
        """All tokens of the chunks."""
        take, tickets, state = self._uploads.take, self._tickets, parts.state
        positions, token_rows = take(tickets.positions), take(tickets.token_rows)
        self._positions = positions
        self._loc = loc = state.slots(token_rows, positions[:, None]).view(-1)
        ends = [chunk.start + chunk.length for chunk in self.chunks]
        batch = ExtendBatch(
            rows=take(tickets.rows),
            starts=take(tickets.starts).int(),
            cu_q=take(tickets.cu_q).int(),
            max_q=max(self.lengths),
            pages=state.pages,
            page_size=state.page_size,
            host_pages=list(self._pages),
            host_lengths=ends,
            host_q=self.lengths,
        )
        self.written = loc.numel()
        return FlatRows(take(tickets.ids), positions, loc, extending(parts.attention, parts.pool, batch))

    @property
    def logit_rows(self) -> torch.Tensor:
        """int64 [finals]: the tokens that prompts end with."""
        take, tickets = self._uploads.take, self._tickets
        return take(tickets.last_tokens)[take(tickets.finals)]

    def run(self, parts: Parts) -> None:
        """The target over all tokens."""
        flat = self.flat_rows(parts)
        self.logits, self.aux = parts.model.forward(
            flat.ids,
            flat.positions,
            flat.loc,
            flat.attend,
            parts.pool,
            logit_rows=self.logit_rows,
            aux_layers=parts.aux_layers,
        )

    def run_beside(self, parts: Parts, buffers: WidthBuffers, batch: int, bound: int) -> None:
        """The target over the first ``batch`` plain decodes of ``buffers`` and all tokens of the chunks, in one forward
        that reads the weights once. What it gives the decodes comes to stand in ``buffers``, as from `run_target`."""
        first, second = decode_rows(parts, buffers, batch, bound), self.flat_rows(parts)

        def attend(layer: int, q: torch.Tensor) -> torch.Tensor:
            return torch.cat([first.attend(layer, q[:batch]), second.attend(layer, q[batch:])])

        logits, aux = parts.model.forward(
            torch.cat([first.ids, second.ids]),
            torch.cat([first.positions, second.positions]),
            torch.cat([first.loc, second.loc]),
            attend,
            parts.pool,
            logit_rows=torch.cat([torch.arange(batch, device=first.ids.device), batch + self.logit_rows]),
            aux_layers=parts.aux_layers,
        )
        buffers.logits[:batch].copy_(logits[:batch])
        buffers.drawn[:batch].copy_(greedy(logits[:batch])[:, None])
        self.logits = logits[batch:]
        if aux is not None and buffers.aux is not None:
            buffers.aux[:batch].copy_(aux[:batch])
            self.aux = aux[batch:]

    def accept(self, parts: Parts) -> None:
        """Draw behind the prompts that ended; the chunks' tokens are committed."""
        take, tickets, state = self._uploads.take, self._tickets, parts.state
        rows, stops = take(tickets.rows), take(tickets.stops)
        state.lens.index_copy_(0, rows, stops.int())
        if not self.finals:
            return
        assert self.logits is not None
        finals = take(tickets.finals)
        self.drawn = drawn = greedy(self.logits)
        if self._samples:
            sampled = take(tickets.sampled)
            who, positions = rows[finals[sampled]], stops[finals[sampled]]
            drawn.index_copy_(
                0, sampled, draw(self.logits[sampled], state, who, positions, is_filtered=self._is_filtered)
            )
        state.tokens.index_copy_(0, rows[finals], drawn)

    def sync(self, draft: Draft, parts: Parts) -> None:
        """Draft K and V of every token of the chunks."""
        assert self.aux is not None
        take, tickets, state = self._uploads.take, self._tickets, parts.state
        next_ids, last_tokens = take(tickets.next_ids), take(tickets.last_tokens)
        if self.drawn is not None:
            next_ids.index_copy_(0, last_tokens[take(tickets.finals)], self.drawn)
        g = draft.head.fuse(self.aux)
        draft.head.write_kv(draft.head.read(next_ids, g), self._positions, self._loc, draft.pool)
        state.draft_g.index_copy_(0, take(tickets.rows), g[last_tokens])
