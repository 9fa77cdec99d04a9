from __future__ import annotations

import io

from engine.models.progress_bar import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_each_stage_has_one_line() -> None:
    stream = Terminal()
    with ProgressBar("m", stream) as bar:
        for done in (0, 500_000, 500_001, 1_000_000):
            bar.show("downloading", done, 1_000_000)
        bar.show("verifying", 1_000_000, 1_000_000)
    assert stream.getvalue().count("\n") == 2
    first, second, _ = stream.getvalue().split("\n")
    assert first.count("\r") == 3  # the third call looks like the second
    assert first.endswith("[##############################] 100%   1.0 of 1.0 MB")
    assert second.startswith("\rm: verifying")


def test_elsewhere_only_whole_lines() -> None:
    stream = io.StringIO()
    with ProgressBar("m", stream) as bar:
        for done in range(0, 1_000_001, 1000):
            bar.show("downloading", done, 1_000_000)
    assert "\r" not in stream.getvalue()
    assert stream.getvalue().endswith("m: downloading 100%   1.0 of 1.0 MB\n")
    assert stream.getvalue().count("\n") < 10
