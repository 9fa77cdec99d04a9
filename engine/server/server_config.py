"""What the server process is started with: its own options beside the engine's."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from engine.config import EngineConfig


class ConfigError(ValueError):
    """The configuration cannot be used; the message says what to change."""


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of the HTTP side and of supervision."""

    name: str = "default"
    """The engine's name on this machine: in the discovery file, for ``specwb ls`` and ``attach``."""
    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes any free port; the discovery file says which."""
    served_model_name: str | None = None
    """The model's name over HTTP; None takes the engine's."""
    max_body_bytes: int = 16 << 20
    drain_s: float = 2.0
    """How long requests in flight may go on after a signal to stop, before they are cut."""
    stop_s: float = 5.0
    """How long the engine may take to leave before it is killed."""
    frozen_s: float = 5.0
    """Without a heartbeat for this long the engine counts as stuck, and ``/health`` says 503."""
    stage_s: float = 120.0
    """A single stage of one step that takes this long counts as stuck, although the heart beats."""
    engine_command: tuple[str, ...] = (sys.executable, "-m", "engine.process")
    """How the engine process is started; a wrapper such as ``numactl`` goes in front."""


class StartConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file that ``--config-json`` names: ``{"server": {…}, "engine": {…}}``."""

    server: ServerConfig = ServerConfig()
    engine: EngineConfig = EngineConfig()


def read_config(path: Path) -> StartConfig:
    """Read and check a start configuration.

    Raises:
        ConfigError: unreadable, not JSON, a field of a wrong name or type, or a value that no engine can run with.
    """
    try:
        config = msgspec.json.decode(path.read_bytes(), type=StartConfig)
    except OSError as error:
        raise ConfigError(f"cannot read the configuration {path}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"the configuration {path} is not usable: {error}") from None
    try:
        config.engine.check()
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return config


def as_json(config: Any) -> bytes:
    """A configuration as the JSON text that ``read_config`` (or the engine process) reads."""
    return msgspec.json.format(msgspec.json.encode(config), indent=2)
