"""An OpenAI-compatible endpoint that is none of ours: no bus, and the manners it is told to have."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

TOKENS = 6
"""Of every answer, two a chunk: as with speculation."""


class ForeignEndpoint:
    """Answers on a port of its own until its exit."""

    def __init__(
        self,
        *,
        usage: bool = True,
        strict: bool = False,
        models: tuple[str, ...] = ("other",),
        fault: Callable[[int], tuple[int, str] | str | None] = lambda number: None,
    ) -> None:
        """Nothing is bound yet.

        Args:
            usage: whether streams end with token counts.
            strict: refuse fields that are not OpenAI's.
            fault: number of the generating request -> None, (status, code), ``cut`` (in mid stream), ``event`` or
                ``silent``.
        """
        self.usage, self.strict, self.models, self.fault = usage, strict, models, fault
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.silence = threading.Event()
        """Set: whoever was told to be silent goes on."""
        self._lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                self._json(200, {"object": "list", "data": [{"id": name} for name in endpoint.models]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with endpoint._lock:
                    endpoint.bodies.append(body)
                    endpoint.keys.append(self.headers.get("authorization"))
                    number = len(endpoint.bodies)
                if endpoint.strict and {"return_token_ids", "ignore_eos"} & set(body):
                    self._json(400, {"error": {"message": "unknown field", "code": "unknown_parameter"}})
                    return
                fault = endpoint.fault(number)
                if isinstance(fault, tuple):
                    self._json(fault[0], {"error": {"message": "told to", "code": fault[1]}})
                    return
                self._stream(body, fault)

            def _json(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, body: dict[str, Any], fault: str | None) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                self._event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
                for number in range(TOKENS // 2):
                    if fault == "silent" and number == 1:
                        endpoint.silence.wait(30)
                    if fault == "cut" and number == 1:
                        self.connection.close()
                        self.close_connection = True
                        return
                    if fault == "event" and number == 1:
                        self._event({"error": {"message": "told to", "code": "engine_error"}})
                        self._chunk(b"")
                        return
                    self._event({"choices": [{"index": 0, "delta": {"content": "a b"}, "finish_reason": None}]})
                if endpoint.usage and body["stream_options"]["include_usage"]:
                    self._event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": TOKENS}})
                self._chunk(b"data: [DONE]\r\n\r\n")
                self._chunk(b"")

            def _event(self, event: dict[str, Any]) -> None:
                self._chunk(b"data: " + json.dumps({"id": "x", **event}).encode() + b"\r\n\r\n")

            def _chunk(self, data: bytes) -> None:
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ForeignEndpoint:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.silence.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
