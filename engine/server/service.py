"""What the HTTP handlers share: the engine's state, the way to it, and the model's text side."""

from __future__ import annotations

from typing import Any

from engine.ipc import Ready
from engine.sampling_params import SamplingError
from engine.server.api_error import ApiError, bad_field
from engine.server.engine_client import EngineClient
from engine.server.engine_state import EngineState
from engine.server.openai_protocol import Options
from engine.server.prompt_encoder import PromptEncoder
from engine.server.server_config import ServerConfig

ANY_MODEL = "default"
"""A model name that every server accepts."""


class Service:
    """One per server process. The encoder comes once the tokenizer has loaded, beside the engine's own start."""

    def __init__(self, config: ServerConfig, state: EngineState, client: EngineClient, started_with: str = "") -> None:
        """``started_with``: the model as ``--model`` named it, which clients may say too."""
        self.config = config
        self._started_with = started_with
        self.state = state
        self.client = client
        self.loaded: PromptEncoder | None = None

    @property
    def encoder(self) -> PromptEncoder:
        assert self.loaded is not None, "require_ready comes first"
        return self.loaded

    @property
    def model_name(self) -> str:
        """The name in answers and in ``/v1/models``; ``default`` while nothing has loaded."""
        if self.config.served_model_name is not None:
            return self.config.served_model_name
        return self.state.ready.model_name if self.state.ready is not None else ANY_MODEL

    def health(self) -> tuple[int, dict[str, Any]]:
        """HTTP status and body of ``/health``: 200 only when a request would be served now."""
        status, body = self.state.report()
        if status == 200 and self.loaded is None:
            return 503, {**body, "status": "loading", "detail": "the tokenizer is loading"}
        return status, body

    def require_ready(self) -> Ready:
        """The engine's limits.

        Raises:
            ApiError: 503 with Retry-After while it loads, restarts, is stuck or stops.
        """
        status, body = self.health()
        if status != 200 or self.state.ready is None:
            raise ApiError(503, f"the engine is not ready: {body['detail']}", code=f"engine_{body['status']}")
        return self.state.ready

    def check(self, options: Options) -> None:
        """Checks that need the model: its name and the ranges of sampling.

        Raises:
            ApiError: 404 for another model's name, 400 for a value out of range.
        """
        self.check_model(options.model)
        assert self.state.ready is not None
        try:
            options.sampling.check(self.state.ready.vocab_size)
        except SamplingError as error:
            raise bad_field(error.field, str(error)) from None

    def check_model(self, name: str | None) -> None:
        """Accept the served model's name, what ``--model`` said, ``default`` and none at all."""
        if name not in (None, ANY_MODEL, self.model_name, self._started_with):
            raise ApiError(
                404,
                f"model {name!r} is not served here; the served models are {self.model_name} (also as {ANY_MODEL})",
                code="model_not_found",
                param="model",
            )
