from __future__ import annotations

import random

import pytest

from engine.text.stop_strings import StopMatcher


def run(stops: list[str], pieces: list[str]) -> tuple[str, str | None, int | None]:
    """Text emitted, stop matched, and the piece that completed it."""
    matcher, emitted, completed = StopMatcher(stops), "", None
    for number, piece in enumerate(pieces):
        result = matcher.push(piece)
        emitted += result.text
        if result.matched is not None and completed is None:
            completed = number
    return emitted + matcher.flush(), matcher.matched, completed


def letter_by_letter(stops: list[str], text: str) -> tuple[str, str | None]:
    """The rule in its plainest form: the first end of any stop cuts; of those that end there, the longest."""
    for end in range(len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            longest = max(ending, key=len)
            return text[: end - len(longest)], longest
    return text, None


@pytest.mark.parametrize(
    ("stops", "pieces", "expected"),
    [
        (["\n\n"], ["one\n", "\ntwo"], ("one", "\n\n", 1)),
        (["STOP"], ["a S", "T", "O", "P b"], ("a ", "STOP", 3)),
        (["STOP"], ["a STO", "STOP"], ("a STO", "STOP", 1)),
        (["aab"], ["a", "a", "a", "b"], ("a", "aab", 3)),
        (["END", "NDX"], ["E", "N", "D", "X"], ("", "END", 2)),
        (["b", "ab"], ["x", "a", "b"], ("x", "ab", 2)),
        (["abcd", "bc"], ["abcd"], ("a", "bc", 0)),
        (["abcd", "bc"], ["a", "b", "c", "d"], ("a", "bc", 2)),
        (["é🌍"], ["caf", "é", "🌍!"], ("caf", "é🌍", 2)),
        (["x"], ["x"], ("", "x", 0)),
    ],
)
def test_b69_no_part_of_a_stop_is_emitted_wherever_the_tokens_end(
    stops: list[str], pieces: list[str], expected: tuple[str, str, int]
) -> None:
    """B69: a stop over token borders is found, and its first part was not sent before."""
    assert run(stops, pieces) == expected


def test_b69_the_cut_into_tokens_changes_nothing() -> None:
    """B69: same text both ways, for stops of 1 to 8 letters and any cut."""
    rng = random.Random(5)
    matched = 0
    for _ in range(3000):
        text = "".join(rng.choice("ab.") for _ in range(rng.randrange(30)))
        stops = ["".join(rng.choice("ab.") for _ in range(rng.randrange(1, 9))) for _ in range(rng.randrange(1, 4))]
        pieces, rest = [], text
        while rest:
            size = rng.randrange(1, 6)
            pieces.append(rest[:size])
            rest = rest[size:]
        emitted, stop, _ = run(stops, pieces)
        assert (emitted, stop) == letter_by_letter(stops, text), (stops, pieces)
        matched += stop is not None
    assert 500 < matched < 2900  # both outcomes were tried


def test_b70_a_beginning_of_a_stop_at_the_end_is_delivered() -> None:
    """B70: stop "assistant", the answer ends in "as"."""
    matcher = StopMatcher(["assistant"])
    assert matcher.push("as easy as").text == "as easy "
    assert matcher.flush() == "as"
    assert matcher.matched is None
    assert matcher.flush() == ""


def test_b70_only_real_prefixes_are_held_back() -> None:
    """B70: text that cannot become a stop goes out at once."""
    matcher = StopMatcher(["assistant", "###"])
    assert matcher.push("assist").text == ""
    assert matcher.push("ed #").text == "assisted "
    assert matcher.push("#").text == ""
    assert matcher.push("#x").matched == "###"

    matcher = StopMatcher(["###"])
    assert matcher.push("a ##").text == "a "
    assert matcher.push("-").text == "##-"


def test_nothing_comes_after_a_match() -> None:
    matcher = StopMatcher(["."])
    assert matcher.push("a.b").text == "a"
    after = matcher.push("more")
    assert (after.text, after.matched) == ("", ".")
    assert matcher.flush() == ""


@pytest.mark.parametrize("stops", [[], [""]])
def test_without_stops_everything_passes(stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    assert matcher.push("").text == ""
    assert matcher.push("text").text == "text"
    assert matcher.flush() == ""
