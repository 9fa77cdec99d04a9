"""The mix of an audit's requests: every way to end, and more than fit."""

from __future__ import annotations

from collections import Counter

from workbench.audit.traffic import LONGEST, REFERENCES, Traffic

CONFIG = {"page_size": 64, "kv_tokens": 2048, "max_model_len": 256, "max_running": 64}
PROMPTS = [f"prompt {number}" for number in range(8)]
TEXTS = ["some answer", "another", "", "the last"]


def test_the_same_seed_gives_the_same_requests() -> None:
    one, same, other = (Traffic(PROMPTS, seed, CONFIG).mixed(35, TEXTS) for seed in (1, 1, 2))
    assert one == same != other


def test_it_has_every_way_to_end_and_fills_the_pool_first() -> None:
    traffic = Traffic(PROMPTS, 0, CONFIG)
    references = traffic.references()
    plan = traffic.mixed(35, TEXTS)
    kinds = Counter(planned.kind for planned in plan)
    assert set(kinds) == {"hog", "stream", "whole", "stop", "sampled", "choices", "left", "abandoned"}
    hogs = traffic.hogs_to_fill()
    assert hogs == 8  # of 4 pages each, and the pool has 32
    assert [planned.kind for planned in plan[:hogs]] == ["hog"] * hogs
    assert all(planned.ask.body["max_tokens"] == LONGEST and planned.leave_after for planned in plan[:hogs])
    assert [planned.number for planned in [*references, *plan]] == list(range(1, 36 + REFERENCES))


def test_a_stop_string_is_looked_for_in_the_answer_of_the_same_prompt() -> None:
    traffic = Traffic(PROMPTS, 0, CONFIG)
    prompts = [planned.ask.body["messages"] for planned in traffic.references()]
    for planned in traffic.mixed(100, TEXTS):
        if planned.kind == "stop":
            text = TEXTS[prompts.index(planned.ask.body["messages"])]
            (stop,) = planned.ask.body["stop"]
            assert stop in text or (not text and stop == "\n")
            assert planned.ask.body["temperature"] == 0


def test_a_pool_that_half_of_the_requests_cannot_fill_leaves_the_other_kinds_their_half() -> None:
    plan = Traffic(PROMPTS, 0, {**CONFIG, "kv_tokens": 1 << 20}).mixed(20, TEXTS)
    assert Counter(planned.kind for planned in plan)["hog"] == 10


def test_a_pool_smaller_than_a_context_is_filled_by_what_it_can_hold() -> None:
    """The server refuses what could not run even alone, and a refusal is a difference."""
    traffic = Traffic(PROMPTS, 0, {"page_size": 256, "kv_tokens": 1024, "max_model_len": 2048, "max_running": 4})
    (hog,) = [planned for planned in traffic.mixed(35, TEXTS) if planned.kind == "hog"]
    assert hog.ask.body["max_tokens"] == 512
