"""Which runs there are, in which order, how they are sent, and what of."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from probes.ratio import Ratio
from workbench.bench.answer import Answer, Usage
from workbench.bench.bar_plot import bar_lines
from workbench.bench.comparison import Comparison, compare
from workbench.bench.load import Budget, Load
from workbench.bench.metrics import Run
from workbench.bench.plan import Level, requests_for, settings
from workbench.bench.request_error import RequestError
from workbench.bench.workload import RandomWords, read_prompts


def test_modes_take_turns_and_the_order_changes_every_round() -> None:
    order = [(s.level.clients, s.round, s.mode) for s in settings([Level(1), Level(4)], ["off", "on", "auto"], 3)]
    assert [mode for clients, _, mode in order if clients == 1] == [
        *("off", "on", "auto"),
        *("off", "auto", "on"),
        *("auto", "off", "on"),
    ]
    assert [clients for clients, _, _ in order] == [1] * 9 + [4] * 9
    assert [(s.mode, s.round) for s in settings([Level(rate=2.5)], [], 2)] == [(None, 0), (None, 1)]


def test_each_prompt_is_asked_equally_often_and_each_client_has_work() -> None:
    assert [requests_for(Level(n), 8) for n in (1, 4, 16, 48)] == [8, 8, 32, 96]
    assert requests_for(Level(5), 3) == 12
    assert requests_for(Level(rate=2.5), 8) == 16


def run_of(rate: float) -> Run:
    return Run(1.0, [Answer(0.0, 1.0, usage=Usage(completion_tokens=round(rate)))])


def test_auto_is_compared_with_the_better_of_the_two_by_pairs_of_a_round() -> None:
    runs = {
        "off": [run_of(rate) for rate in (100, 200, 100)],
        "on": [run_of(rate) for rate in (50, 120, 60)],
        "auto": [run_of(rate) for rate in (98, 190, 99)],
    }
    on_off, auto = compare(runs)
    assert (on_off.numerator, on_off.denominator, on_off.ratio.median) == ("on", "off", 0.6)
    assert (auto.denominator, auto.is_better, auto.ratio.pairs) == ("off", True, 3)
    assert auto.ratio.median == pytest.approx(0.98)
    assert "not resolved (fewer than 7 pairs)" in auto.text
    assert compare({"auto": runs["auto"]}) == []


def test_the_bar_is_judged_by_the_intervals_upper_end() -> None:
    assert "at least 0.95: reached" in Comparison("auto", "off", Ratio(0.94, 0.92, 0.96, 7), True).text
    assert "at least 0.95: missed" in Comparison("auto", "off", Ratio(0.90, 0.88, 0.92, 7), True).text


async def test_a_closed_loop_never_has_more_in_flight_than_clients() -> None:
    async def send(index: int) -> Answer:
        await asyncio.sleep(0)
        return Answer(0.0, id=str(index))

    load = Load(send)
    await load.closed(3, Budget(requests=10))
    assert load.most_in_flight == 3
    assert sorted(int(answer.id) for answer in load.answers) == list(range(10))


async def test_an_open_loop_does_not_wait_for_answers() -> None:
    """All five are on their way before the first is answered: a closed loop would hang here."""
    all_sent = asyncio.Event()

    async def send(index: int) -> Answer:
        if index == 4:
            all_sent.set()
        await all_sent.wait()
        return Answer(0.0)

    load = Load(send)
    await load.open(1000.0, Budget(requests=5), seed=0)
    assert load.most_in_flight == 5


async def test_a_run_in_which_everything_fails_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.bench.load.PAUSE_S", 0.0)

    async def send(index: int) -> Answer:
        return Answer(0.0, error=RequestError("no connection"))

    load = Load(send)
    await load.closed(2, Budget(duration=3600))
    assert load.gave_up
    assert 20 <= len(load.answers) <= 21


def test_random_words_are_the_same_in_every_run_and_fit_the_length_in_tokens() -> None:
    words = RandomWords(128, 64, seed=3)
    assert words.ask(5) == RandomWords(128, 64, seed=3).ask(5)
    assert words.ask(5) != words.ask(6) != RandomWords(128, 64, seed=4).ask(6)
    words.fit(16, 64)  # this tokenizer makes four tokens of a word
    assert len(words.ask(0).body["prompt"].split()) == 32
    assert words.ask(0).body["max_tokens"] == 64
    assert words.ask(0).extensions == {"ignore_eos": True}


def test_a_wrong_prompt_file_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": "a", "prompt": "Hello"}\n\n{"id": "b"}\n')
    with pytest.raises(ValueError, match=r"p\.jsonl, line 3: .*prompt.*expected one"):
        read_prompts(path)
    path.write_text("\n")
    with pytest.raises(ValueError, match="has no prompt"):
        read_prompts(path)
    with pytest.raises(ValueError, match="No such file"):
        read_prompts(tmp_path / "none")


def test_bars_are_on_one_scale_and_keep_their_numbers() -> None:
    lines = bar_lines([("1", [("off", 20.0), ("on", 40.0)]), ("48", [("off", 0.0), ("on", 0.1)])], 40)
    assert lines == [
        " 1  off  " + "█" * 13 + " 20.0",
        "    on   " + "█" * 26 + " 40.0",
        "48  off   0.0",
        "    on   ▏ 0.1",
    ]
