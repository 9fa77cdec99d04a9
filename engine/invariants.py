"""What holds between two steps, whatever ran: ``--debug-checks`` asks after every one."""

from __future__ import annotations

from collections.abc import Sequence

from engine.kv.ledger import KvLedger
from engine.request import Request
from engine.worker import Worker


def check_invariants(running: Sequence[Request], ledger: KvLedger, worker: Worker) -> None:
    """Slots in use = committed lengths; every committed position is in the draft's KV or waits for it.

    ``running``: all requests that own slots. What a step in flight has reserved or may commit is allowed for.

    Raises:
        AssertionError: naming both numbers.
    """
    flying = {request.request_id: request.flying_most for request in running if request.flying_most}
    ledger.check({request.request_id: request.committed for request in running}, flying)
    for request in running:
        if request.has_landed_prompt:
            assert len(request.ids) == request.committed + 1, (
                f"{request.request_id}: {len(request.ids)} tokens, {request.committed} of them with KV"
            )
    if worker.aux_layers:
        known = worker.used_slots() + sum(worker.lag(request.request_id) for request in running)
        drafting = [request for request in running if not request.stays_plain]
        committed = sum(request.committed for request in drafting)
        most = committed + sum(request.flying_most for request in drafting)
        assert committed <= known <= most, (
            f"the draft knows {known} positions, the target committed {committed}, {most} with the step in flight"
        )
