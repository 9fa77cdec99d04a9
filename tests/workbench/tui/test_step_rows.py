"""Which rows a table shows, and in which order."""

from __future__ import annotations

from probes.events import StepEvent
from tests.workbench import made_events as made
from workbench.tui.step_filter import parse_filter
from workbench.tui.step_order import VALUES, StepOrder, next_order
from workbench.tui.step_row import COLUMNS
from workbench.tui.step_rows import AllRows, FilteredRows, Rows, SortedRows
from workbench.tui.step_search import find_step
from workbench.tui.timeline import Mark, Timeline


def timeline(steps: int, capacity: int = 20_000) -> Timeline:
    """Steps from 1 with 1 to 9 requests, a mark after every tenth."""
    made_timeline = Timeline(capacity)
    for number in range(1, steps + 1):
        made_timeline.append(made.step(number, 1 + number % 9))
        if number % 10 == 0:
            made_timeline.append(Mark("knob", f"after {number}"))
    return made_timeline


def steps_of(rows: Rows) -> list[int]:
    found = [rows.row(position) for position in range(rows.first, rows.end)]
    return [entry.step for entry in found if isinstance(entry, StepEvent)]


def filtered(over: Timeline, text: str) -> FilteredRows:
    wanted = parse_filter(text)
    assert wanted is not None
    return FilteredRows(over, wanted)


def test_a_filter_keeps_the_order_of_time_and_leaves_marks_out() -> None:
    rows = filtered(timeline(100), "reqs=9")
    while not rows.is_complete:
        rows.advance(0.0)
    assert steps_of(rows) == [number for number in range(1, 101) if number % 9 == 8]
    assert rows.matches == 11
    assert [rows.number(position) for position in (rows.first, rows.end - 1)] == [7, 106]


def test_the_newest_matches_come_first_and_keep_their_positions() -> None:
    """B103: a filter over a long history needs many looks, and none of them moves what is on the screen."""
    rows = filtered(timeline(3000), "reqs=9")
    rows.advance(0.0)
    assert not rows.is_complete
    assert 0 < rows.share_done < 1
    newest, position = rows.row(rows.end - 1), rows.end - 1
    assert isinstance(newest, StepEvent)
    assert newest.step == 2996
    while not rows.is_complete:
        rows.advance(0.0)
    assert rows.row(position) == newest
    assert rows.share_done == 1.0


def test_new_rows_are_looked_at_once_and_old_ones_go() -> None:
    over = timeline(80, capacity=80)
    rows = filtered(over, "reqs=9")
    rows.advance(1.0)
    seen: list[int] = []
    wanted = rows._wanted
    assert wanted is not None
    for number in range(81, 1000):
        over.append(made.step(number, 1 + number % 9))
        rows.advance(1.0)
        seen.append(rows.end)
    assert steps_of(rows) == [n for n in range(1000 - len(over), 1000) if n % 9 == 8]
    assert all(over.row(rows.number(position)) is not None for position in range(rows.first, rows.end))
    assert seen == sorted(seen), "positions only grow"


def test_frozen_rows_stay_and_finish_looking() -> None:
    over = timeline(3000)
    rows = filtered(over, "reqs=9")
    rows.advance(0.0)
    still = rows.frozen(over.snapshot())
    for number in range(3001, 4000):
        over.append(made.step(number, 9))
    while not still.is_complete:
        still.advance(0.0)
    assert steps_of(still)[-1] == 2996
    assert steps_of(still)[0] == 8


def test_nearest_is_the_row_itself_or_the_next() -> None:
    rows = filtered(timeline(100), "reqs=9")
    rows.advance(10.0)
    for position in range(rows.first, rows.end):
        assert rows.nearest(rows.number(position)) == position
    assert rows.nearest(0) == rows.first
    assert rows.nearest(10_000) == rows.end - 1
    assert AllRows(timeline(10)).nearest(99) == 10


def test_sorted_by_a_column_steps_without_a_value_last() -> None:
    over = timeline(30)
    rows = AllRows(over)
    by_requests = SortedRows(rows, over, StepOrder("reqs", largest_first=True))
    requests = [entry.requests for p in range(by_requests.end) if isinstance(entry := by_requests.row(p), StepEvent)]
    assert requests == sorted(requests, reverse=True)
    by_accept = SortedRows(rows, over, StepOrder("acc", largest_first=False))
    lengths = [entry.accept_length for p in range(by_accept.end) if isinstance(entry := by_accept.row(p), StepEvent)]
    known = [length for length in lengths if length is not None]
    assert known == sorted(known)
    assert lengths[: len(known)] == known
    assert len(lengths) == 30


def test_every_order_reads_what_its_column_shows() -> None:
    titles = {column.title for column in COLUMNS}
    assert VALUES.keys() <= titles
    over = Timeline()
    over.append(made.prefill(1, 300))
    payload = over.payload(0)
    assert payload is not None
    values = {title: read(payload) for title, read in VALUES.items()}
    assert values == {
        "ms": 43.31 * 1000,
        "acc": None,
        "reqs": 0,
        "emit": 0,
        "slots": 300,
        "prompt": 300,
        "que": 2,
        "mode": "prefill",
        "reason": "prefill_first",
    }


def test_orders_go_round_and_end_with_time() -> None:
    order, seen = next_order(None), []
    while order is not None:
        seen.append(order)
        order = next_order(order)
    assert [each.column for each in seen] == list(VALUES)
    assert seen[0].words == "ms, largest first"
    assert seen[-1].words == "reason, a to z"
    assert seen[0].turned() == StepOrder("ms", largest_first=False)


def test_a_step_is_found_by_number_newest_boot_first() -> None:
    over = Timeline()
    for boot in ("old", "new"):
        for number in (1, 2, 3, 7):
            over.append(made.step(number, boot_id=boot))
        over.append(Mark("restart", "again"))
    assert find_step(over, 3) == (7, 3)
    assert find_step(over, 3, "old") == (2, 3)
    assert find_step(over, 6) == (8, 7)
    assert find_step(over, 6, "gone") is None
