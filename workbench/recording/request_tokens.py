"""What a recording holds of prompts and answers: nothing, unless it was asked to."""

from __future__ import annotations

import msgspec

from probes.events import Event, RequestEvent, RowsEvent


def without_tokens(event: Event) -> Event:
    """The same event without token ids, stop strings and seeds; itself where it has none."""
    match event:
        case RequestEvent() if event.prompt_token_ids is not None or event.output_token_ids is not None:
            return msgspec.structs.replace(
                event, prompt_token_ids=None, sampling=None, seed=None, output_token_ids=None
            )
        case RowsEvent() if any(row.token_ids is not None for row in event.rows):
            rows = [msgspec.structs.replace(row, token_ids=None) for row in event.rows]
            return msgspec.structs.replace(event, rows=rows)
    return event
