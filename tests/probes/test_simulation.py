"""What is not real in an engine, by its own word and by its start options."""

from __future__ import annotations

from typing import Any

import pytest

from probes.simulation import UNSAID, shape_in, simulated_text, simulation_of
from tests.workbench import made_events as made


@pytest.mark.parametrize(
    ("hello", "what"),
    [
        ({}, ""),
        ({"config": {"weights": "auto", "simulate_accept": None, "model": "smollm2-135m"}}, ""),
        ({"config": {"simulate_accept": 2.6}}, "accept length set to 2.6"),
        ({"config": {"weights": "random"}}, "random weights"),
        ({"config": {"model": "shape:llama-3.1-8b"}}, "random weights, shape llama-3.1-8b"),
        ({"model": {"name": "shape:llama-3.1-8b"}}, "random weights, shape llama-3.1-8b"),
        ({"config": made.SIMULATED}, made.SIMULATION),
        ({"config": made.SIMULATED, "simulated": True}, made.SIMULATION),
        ({"simulated": True}, UNSAID),
        ({"model": {"name": None}, "config": {"model": 7}}, ""),
    ],
)
def test_what_a_hello_gives_away(hello: dict[str, Any], what: str) -> None:
    assert simulation_of(made.hello(**hello)) == what


def test_the_word_stands_only_where_something_is_simulated() -> None:
    assert simulated_text("random weights") == "SIMULATED: random weights"
    assert simulated_text("") == ""


def test_a_name_with_the_word_in_it_is_no_shape() -> None:
    assert shape_in("models/shape:x") == ""
    assert shape_in("shape:x") == "x"
