"""The step's trace names real code: an operator who follows it lands where the count was made."""

from __future__ import annotations

import importlib
from functools import reduce

from tests.engine.tiny import GREEDY, STORY, both_schedulers, eagle_engine, step_events

pytestmark = both_schedulers


def test_every_entry_of_the_trace_can_be_looked_up() -> None:
    llm, sink = eagle_engine(STORY)
    llm.generate([[1, 2, 3]], GREEDY)
    trace = step_events(sink)[-1].trace
    assert set(trace) == {"decision", "widths", "slots_expected", "slots_reserved", "slots_written"}
    for quantity, where in trace.items():
        module, _, name = where.rpartition(" ")[2].partition(":")
        assert callable(reduce(getattr, name.split("."), importlib.import_module(module))), f"{quantity}: {where}"
