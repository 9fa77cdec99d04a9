"""What a request can come to other than an answer, in a few words that can be counted."""

from __future__ import annotations


class RequestError(Exception):
    """A request got no whole answer."""

    def __init__(self, reason: str, detail: str = "", *, status: int | None = None, retry_after: float = 0.0) -> None:
        """``reason``: few words, the same for all failures of a kind: ``429 queue_full``, ``connection lost``."""
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.status = status
        """Of the HTTP answer; None where there was none."""
        self.retry_after = retry_after
        """Seconds that the server asks clients to wait."""
