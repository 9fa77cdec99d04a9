"""The tables of a results file."""

from __future__ import annotations

from engine.gpu_check.check_file import Cell, CheckFile
from engine.gpu_check.table import markdown, plain_text
from tests.engine.gpu_check.results import full_results


def rows(text: str, title: str) -> list[list[str]]:
    """The rows below a heading, without the header and its rule."""
    lines = text.split(f"### {title}\n\n")[1].split("\n\n", maxsplit=1)[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_sweep_has_a_row_a_load_with_floor_and_vllm() -> None:
    table = rows(markdown(full_results()), "Output tokens/s")
    assert [row[0] for row in table] == ["1", "16", "64", "128", "250"]
    assert table[-1][1:6] == ["15,600", "15,100", "15,490", "15,500", "16,224"]
    assert table[-1][6:] == ["96.2%", "1.00%", "15,013, 13,621, 14,517, 14,375"]


def test_the_header_says_when_where_and_with_which_versions() -> None:
    first = markdown(full_results()).splitlines()[0]
    for part in ("a card", "2026-11-30", "driver 1.2", "torch 2.11.0", "shape:llama-3.1-8b", "random weights", "2.6"):
        assert part in first


def test_it_says_so_when_speculation_loses() -> None:
    """B64: on and off, acceptance, time by phase, and a word."""
    (row,) = rows(markdown(full_results()), "The default model with its own acceptance")
    assert row[2:4] == ["1,000", "900"]
    assert row[-3:] == ["2.10", "run 90%, accept 9%, idle 1%", "loses"]


def test_every_table_has_as_many_cells_in_each_row_as_in_its_header() -> None:
    for part in markdown(full_results()).split("\n\n"):
        lines = [line for line in part.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1


def test_the_fastest_layouts_stand_beside_the_one_in_use() -> None:
    file = full_results()
    found = {"in use": 59.3, "16/32/4/4/128": 59.4, "16/64/4/3/-": 51.0, "16/64/8/4/-": "OutOfResources"}
    file.cells["tiles/verify 250x4"] = Cell(value=found)
    (row,) = rows(markdown(file), "Layouts of attention, µs")
    assert row == ["verify 250x4", "59.3", "16/64/4/3/-: 51, 16/32/4/4/128: 59.4"]


def test_what_failed_or_was_skipped_is_listed() -> None:
    file = full_results()
    file.cells["probe/250"] = Cell(error="OSError: no socket\nmore")
    file.cells["sanitizer/eager"] = Cell(skipped="not on the PATH")
    text = markdown(file)
    assert "- probe/250: OSError: no socket\n" in text + "\n"
    assert "- sanitizer/eager: skipped, not on the PATH" in text


def test_an_empty_file_has_no_tables_but_the_bars() -> None:
    text = markdown(CheckFile())
    assert "nothing ran yet" in text
    assert text.count("###") == 1
    assert "### Bars" in text


def test_the_terminal_gets_the_same_and_a_last_line() -> None:
    text = plain_text(full_results())
    assert text.splitlines()[-1].startswith("bars: ")
    assert "missed" not in text.splitlines()[-1]
    assert "15,600" in text
