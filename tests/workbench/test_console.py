"""What every command prints with."""

from __future__ import annotations

from workbench.console import Command, folded, table_lines

LINE = "model smollm2-135m, float16 on cpu, 2 threads; draft smollm2-135m-eagle3 (eagle3)\ntree topk 4"


def test_a_terminal_gets_lines_broken_between_words() -> None:
    lines = folded(LINE, 40)
    assert max(map(len, lines)) <= 40
    assert lines[1].startswith("  ")
    assert lines[-1] == "tree topk 4"
    assert " ".join(line.strip() for line in lines).split() == LINE.split()


def test_columns_of_a_table_stay_as_they_are() -> None:
    assert folded("  2.5s        8    PLAIN", 80) == ["  2.5s        8    PLAIN"]
    assert folded("", 80) == [""]


def test_a_pipe_gets_whole_lines() -> None:
    assert folded(LINE, None) == LINE.splitlines()


HEADER = ("ROLE", "VALUE", "WHY")
ROW = ("worker", "EngineCore", "the only worker: all schedulers drive the same stages")


def test_an_address_stays_in_one_piece() -> None:
    assert folded("see http://127.0.0.1:8000/v1/chat/completions", 20) == [
        "see",
        "  http://127.0.0.1:8000/v1/chat/completions",
    ]


def test_a_table_for_a_pipe_is_whole() -> None:
    assert table_lines(HEADER, [ROW])[1] == "worker  EngineCore  the only worker: all schedulers drive the same stages"


def test_a_narrow_terminal_gets_smaller_gaps_then_the_last_column_below() -> None:
    whole = len(table_lines(HEADER, [ROW])[1])
    assert table_lines(HEADER, [ROW], columns=whole)[1] == "  ".join(ROW)
    assert table_lines(HEADER, [ROW], columns=whole - 1)[1] == " ".join(ROW)
    assert table_lines(HEADER, [ROW], columns=40) == [
        "ROLE   VALUE",
        "    WHY",
        "worker EngineCore",
        "    the only worker: all schedulers",
        "    drive the same stages",
    ]


def test_a_command_is_never_folded() -> None:
    command = Command("  specwb replay " + "/".join(["folder"] * 20))
    assert folded(command, 40) == [command]
    advice = "speculation pays here at up to one client; try `specwb serve threshold=1` (it is 4)"
    assert folded(advice, 50) == [
        "speculation pays here at up to one client; try",
        "  `specwb serve threshold=1` (it is 4)",
    ]
    assert folded(advice, None) == [advice]
