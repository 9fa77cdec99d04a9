"""Errors as OpenAI's API words them, so that unmodified clients raise the exception that fits."""

from __future__ import annotations

from typing import Any

from engine.ipc import Failed

RETRY_AFTER_S = 2
"""What a 503 or 429 tells the client to wait: about one restart of a small engine."""

ERROR_TYPES = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """An answer that is an error. ``param`` names the field at fault, ``code`` is stable for programs."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = RETRY_AFTER_S if retry_after is None and status in (429, 503) else retry_after

    @classmethod
    def from_failed(cls, failed: Failed) -> ApiError:
        """What the engine said about a request, for the client."""
        return cls(failed.status, failed.message, code=failed.code, param=failed.field)

    @property
    def kind(self) -> str:
        """OpenAI's ``type`` for the status."""
        return ERROR_TYPES.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}

    def body(self) -> dict[str, Any]:
        """The JSON body, and the payload of an error event in a stream."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


def bad_field(param: str, message: str, code: str | None = "invalid_value") -> ApiError:
    """A 400 that names the field."""
    return ApiError(400, message if message.startswith(param) else f"{param}: {message}", code=code, param=param)
