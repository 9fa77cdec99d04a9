"""The HTTP port: bound before anything else starts, so that a taken one costs nothing."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

WILDCARDS = ("0.0.0.0", "::", "")


class ListenError(Exception):
    """The address cannot be bound; the message names the option to change."""


def bind(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises:
        ListenError: unknown host, port in use or not allowed.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise ListenError(f"--host {host}: {error.strerror}; give an address of this machine") from None
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ListenError(
                f"port {port} on {host} is in use, by another engine or program; choose another with --port, or 0 for "
                f"any free one"
            ) from None
        raise ListenError(
            f"cannot listen on {host}, port {port}: {error.strerror}; choose others with --host, --port"
        ) from None
    return listener


def local_url(listener: socket.socket) -> str:
    """How a program on this machine reaches the listener."""
    host, port = listener.getsockname()[:2]
    if host in WILDCARDS:
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class HttpServer(uvicorn.Server):
    """uvicorn without its own signal handling: the server process decides when to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def http_server(app: ASGIApp) -> HttpServer:
    """A quiet HTTP/1.1 server for the application."""
    return HttpServer(
        uvicorn.Config(
            app,
            loop="asyncio",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
        )
    )
