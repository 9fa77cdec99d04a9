"""The file of a check: what survives a cut, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.gpu_check.check_file import Cell, CheckFile, CheckFileError, load, same_machine, save


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    file = CheckFile(machine={"card": "x"}, cells={"a/b": Cell(value={"ms": 1.5}), "a/c": Cell(error="no")})
    save(tmp_path / "out.json", file)
    assert load(tmp_path / "out.json") == file
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_no_file_is_an_empty_one(tmp_path: Path) -> None:
    assert load(tmp_path / "out.json") == CheckFile()


def test_another_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(CheckFileError, match="is not the file of a check"):
        load(tmp_path / "notes.txt")


def test_values_are_those_of_cells_that_were_done() -> None:
    file = CheckFile(cells={"a/b": Cell(value=1), "a/c": Cell(error="no"), "a/d": Cell(skipped="not here")})
    assert file.values("a") == {"b": 1}
    assert file.value("a/c") is None


@pytest.mark.parametrize("other", [{"card": "another"}, {"card": "one", "driver": "new"}])
def test_two_machines_do_not_mix(other: dict[str, str]) -> None:
    file = CheckFile(machine={"card": "one"}, sizes={})
    same_machine(file, {"card": "one"}, {})
    with pytest.raises(CheckFileError, match="name another --out"):
        same_machine(file, other, {})


def test_two_sizes_do_not_mix() -> None:
    with pytest.raises(CheckFileError, match="sizes"):
        same_machine(CheckFile(sizes={"name": "full"}), {}, {"name": "quick"})
