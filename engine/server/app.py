"""The HTTP routes."""

from __future__ import annotations

import time
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from engine.server.api_error import ApiError
from engine.server.chat import ChatDialect
from engine.server.completions import CompletionDialect
from engine.server.endpoint import GenerationEndpoint
from engine.server.service import Service


def build_app(service: Service) -> Starlette:
    """The ASGI application of one server."""
    started = int(time.time())
    limit = service.config.max_body_bytes

    def model() -> dict[str, Any]:
        ready = service.state.ready
        entry: dict[str, Any] = {
            "id": service.model_name,
            "object": "model",
            "created": started,
            "owned_by": "specwb",
        }
        return entry if ready is None else {**entry, "max_model_len": ready.max_model_len}

    async def models(request: Request) -> Response:
        service.require_ready()
        return json_response(200, {"object": "list", "data": [model()]})

    async def one_model(request: Request) -> Response:
        service.require_ready()
        service.check_model(request.path_params["name"])
        return json_response(200, model())

    async def health(request: Request) -> Response:
        status, body = service.health()
        return json_response(status, body)

    async def live(request: Request) -> Response:
        return json_response(200, {"status": "live"})

    return Starlette(
        routes=[
            Route("/v1/completions", _generator(CompletionDialect(service), service, limit), methods=["POST"]),
            Route("/v1/chat/completions", _generator(ChatDialect(service), service, limit), methods=["POST"]),
            Route("/v1/models", models),
            Route("/v1/models/{name:path}", one_model),
            Route("/health", health),
            Route("/live", live),
        ],
        exception_handlers={ApiError: _api_error, HTTPException: _http_error},
    )


def _generator(dialect: CompletionDialect | ChatDialect, service: Service, limit: int) -> GenerationEndpoint:
    return GenerationEndpoint(dialect, service.client, limit)


def json_response(status: int, body: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(body), status, headers, media_type="application/json")


async def _api_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return json_response(error.status, error.body(), error.headers)


async def _http_error(request: Request, error: Exception) -> Response:
    """The framework's own errors (unknown path, wrong method) in the same format as ours."""
    assert isinstance(error, HTTPException)
    message = f"{request.method} {request.url.path}: {error.detail}"
    return json_response(error.status_code, ApiError(error.status_code, message).body(), dict(error.headers or {}))
