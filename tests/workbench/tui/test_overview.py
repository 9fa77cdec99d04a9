"""The overview and the acceptance view: what they say, and how they look."""

from __future__ import annotations

import functools

import pytest

from probes.subscriber import Gap, Restart
from tests.workbench import golden
from tests.workbench import made_events as made
from tests.workbench.fake_feed import Bench
from tests.workbench.tui.made_session import MadeSession
from tests.workbench.tui.pilots import settle
from workbench.cell_text import width_of
from workbench.tui.accept_lines import accept_lines
from workbench.tui.accept_view import AcceptView
from workbench.tui.gain_words import gain_lines
from workbench.tui.history import History, Second
from workbench.tui.line_panel import Line
from workbench.tui.lines_view import LinesView
from workbench.tui.overview_lines import overview_lines
from workbench.tui.overview_view import OverviewView
from workbench.tui.plot import ASCII, BLOCKS, Glyphs
from workbench.tui.session_state import SessionState

SIZES = [(80, 24), (120, 40)]


def minutes() -> MadeSession:
    """A load through the threshold, an operator who measures off, a loss, a silence, another threshold."""
    session = MadeSession()
    session.idle(12)
    session.decode(40, 2)
    session.decode(20, 4)
    session.decode(40, 7, queue=2)
    session.set(spec="off")
    session.decode(6, 3)
    session.set(spec="auto")
    session.decode(20, 3)
    session.items.append(Gap("step", session.number + 1, session.number + 40, recovered=False))
    session.number += 40
    session.silence(3)
    session.decode(30, 3)
    session.silence(8)
    session.set(threshold=8)
    session.decode(30, 7, queue=1)
    session.decode(25, 3)
    return session


def state_of(session: MadeSession, now: float = 1000.0) -> SessionState:
    state = SessionState()
    for item in session.items:
        state.apply(item, now)
    return state


@functools.cache
def minutes_state() -> SessionState:
    return state_of(minutes())


def overview(session: MadeSession, width: int = 80, height: int = 17, glyphs: Glyphs = BLOCKS) -> str:
    lines = overview_lines(state_of(session), 1000.0, width, height, glyphs)
    return "\n".join("".join(text for text, _ in line) for line in lines)


def acceptance(session: MadeSession, width: int = 80, height: int = 17, glyphs: Glyphs = BLOCKS) -> str:
    lines = accept_lines(state_of(session), 1000.0, width, height, glyphs)
    return "\n".join("".join(text for text, _ in line) for line in lines)


class CountedHistory:
    """Counts the seconds that are read from a history."""

    def __init__(self, history: History) -> None:
        self.count = 0
        second = history.second

        def counted(number: int) -> Second | None:
            self.count += 1
            return second(number)

        history.second = counted  # type: ignore[method-assign]


def below_status(bench: Bench, view: LinesView) -> str:
    """The view's own part of the screen: the rest is in the snapshots of others."""
    top = view.region.y
    return "\n".join(bench.text().splitlines()[top : top + view.region.height])


@pytest.mark.parametrize("size", [*SIZES, (200, 50)])
async def test_snapshot_of_the_overview(size: tuple[int, int]) -> None:
    bench = Bench(minutes().items, view="overview")
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        assert bench.text().splitlines()[5].startswith("[1 overview]")
        view = bench.app.query_one(OverviewView)
        golden.check(f"overview-{size[0]}x{size[1]}", below_status(bench, view))


@pytest.mark.parametrize("size", SIZES)
async def test_snapshot_of_acceptance(size: tuple[int, int]) -> None:
    bench = Bench(minutes().items, view="overview")
    async with bench.app.run_test(size=size) as pilot:
        await settle(pilot, bench)
        await pilot.press("3")
        await pilot.pause()
        view = bench.app.query_one(AcceptView)
        golden.check(f"acceptance-{size[0]}x{size[1]}", below_status(bench, view))


async def test_the_overview_opens_first_and_keys_lead_on() -> None:
    bench = Bench(minutes().items, view="overview")
    async with bench.app.run_test(size=(80, 24)) as pilot:
        await settle(pilot, bench)
        assert "Is speculation winning now?" in bench.text()
        await pilot.press("2")
        await pilot.pause()
        assert "Is speculation winning now?" not in bench.text()
        await pilot.press("1")
        await pilot.pause()
        assert "Is speculation winning now?" in bench.text()


async def test_views_follow_a_resize() -> None:
    bench = Bench(minutes().items, view="overview")
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        for size in [(80, 24), (200, 50), (40, 10)]:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            await settle(pilot, bench)
            assert len(bench.text().splitlines()) == size[1]
            assert "Is speculation winning now?" in bench.text()


async def test_what_did_not_change_is_not_drawn_and_nothing_more_than_four_times_a_second() -> None:
    """B102, B103, B113: a second with 500 steps redraws few lines, whatever the history holds."""
    session = minutes()
    bench = Bench(session.items, view="overview")
    async with bench.app.run_test(size=(120, 40)) as pilot:
        await settle(pilot, bench)
        view = bench.app.query_one(OverviewView)
        lines = view.lines
        calls: list[float] = []

        def counted(state: SessionState, now: float, width: int, height: int) -> list[Line]:
            calls.append(now)
            return lines(state, now, width, height)

        view.lines = counted  # type: ignore[method-assign]
        drawn: list[int] = []
        panel = view._panel
        render_line = panel.render_line
        panel.render_line = lambda y: drawn.append(y) or render_line(y)  # type: ignore[func-returns-value,method-assign]
        for _ in range(10):
            bench.clock.advance(0.1)
            bench.feed_now(*(made.step(9000 + n, 3, t=session.t, knob_epoch=3) for n in range(50)))
        await pilot.pause()
        assert 1 <= len(calls) <= 5
        assert len(set(drawn)) < view.size.height


@pytest.mark.parametrize("width", [20, 40, 79, 80, 100, 119, 120, 179, 180, 250])
@pytest.mark.parametrize("height", [1, 5, 12, 17, 24, 33, 60])
@pytest.mark.parametrize("glyphs", [BLOCKS, ASCII])
def test_lines_fit_any_room(width: int, height: int, glyphs: Glyphs) -> None:
    state = minutes_state()
    for lines in (
        overview_lines(state, 1000.0, width, height, glyphs),
        accept_lines(state, 1000.0, width, height, glyphs),
    ):
        assert len(lines) == height
        if width >= 80:
            assert max(sum(width_of(text) for text, _ in line) for line in lines) <= width


def test_charts_are_ascii_where_they_must_be() -> None:
    """B108: what the views draw themselves, on a console without blocks."""
    for text in (overview(minutes(), glyphs=ASCII), acceptance(minutes(), glyphs=ASCII)):
        assert {character for character in text if ord(character) > 126} <= {"→", "›"}


def test_answer_yes_with_age_and_spread() -> None:
    text = overview(minutes())
    assert "Is speculation winning now?   YES   on is 1.28× off at 3 requests" in text
    assert "off 65.2 tok/s (128 steps, 2 min ago)" in text
    assert "90% interval: 1.2" in text


def test_answer_no() -> None:
    session = MadeSession()
    for value in ("on", "off"):
        session.set(spec=value)
        session.decode(10, 20)
    assert "Is speculation winning now?   NO   on is 0.75× off at 20 requests" in overview(session)


def test_unknown_says_what_is_missing_and_what_would_tell() -> None:
    session = MadeSession(name="demo")
    session.decode(30, 3)
    text = overview(session, width=120, height=30)
    assert "UNKNOWN   no plain step at 3 requests yet" in text
    assert "to know: press s and choose off for some 2 s, or: specwb set demo spec=off --for 5s" in text
    assert "on 83.7 tok/s (128 steps, now)" in text


def test_in_a_recording_only_what_is_missing_is_said() -> None:
    """Nobody can switch its engine, start it anew or send it a request."""

    def replayed(session: MadeSession) -> list[str]:
        state = state_of(session)
        state.is_replay = True
        lines = gain_lines(state, 1000.0, 120, BLOCKS)
        return ["".join(text for text, _ in line) for line in lines]

    question = "Is speculation winning now?   UNKNOWN   "
    session = MadeSession(name="demo")
    assert replayed(session) == [f"{question}nothing was decoded yet", "", ""]
    session.decode(30, 3)
    known = "  on 83.7 tok/s (128 steps, now)"
    assert replayed(session) == [f"{question}no plain step at 3 requests yet", known, ""]
    session.idle(5)
    idle = replayed(session)
    assert idle == [f"{question}nothing decodes at the moment", "", ""]
    plain = replayed(MadeSession(draft=None))
    assert plain == [f"{question}no draft model is loaded", "  every step is plain", ""]


def test_unknown_counts_what_there_is() -> None:
    session = MadeSession()
    session.decode(30, 3)
    session.set(spec="off")
    session.decode(0.5, 3)
    assert "of 20 plain steps at 3 requests yet" in overview(session)
    session = MadeSession()
    session.decode(1, 3)
    assert "of the 20 of each kind that it takes" in overview(session)


def test_unknown_names_the_nearest_load_that_is_known() -> None:
    session = MadeSession()
    for value in ("on", "off", "auto"):
        session.set(spec=value)
        session.decode(10, 6 if value != "auto" else 3)
    assert "at 6 requests on was 1.08× off (1.0" in overview(session)


def test_pooled_says_so() -> None:
    session = MadeSession()
    for value in ("on", "off"):
        session.set(spec=value)
        for requests in (15, 17):
            session.decode(4, requests)
    session.decode(3, 16)
    assert "pooled from 15 to 17 requests" in overview(session)


def test_no_draft_no_steps_no_load() -> None:
    """B61, B66: never a number that looks live."""
    session = MadeSession(draft=None)
    assert "UNKNOWN   no draft model is loaded" in overview(session)
    session = MadeSession()
    assert "UNKNOWN   nothing was decoded yet" in overview(session)
    assert "KV not known before the first step" in overview(session)
    session = minutes()
    session.idle(30)
    text = overview(session)
    assert "UNKNOWN   nothing decodes at the moment" in text
    assert "before: at 3 requests on was 1.28× off" in text
    assert "now 0.0" in text
    assert "n/a" in text


def test_an_engine_that_is_not_heard_is_not_said_to_wait_for_requests() -> None:
    lines = overview_lines(state_of(minutes(), 1000.0), 1006.0, 80, 17, BLOCKS)
    text = "\n".join("".join(text for text, _ in line) for line in lines)
    assert "UNKNOWN   the engine is not heard" in text
    assert "send the engine some requests" not in text


def test_restart_forgets_the_gain_and_marks_the_axis() -> None:
    """B89."""
    session = minutes()
    session.items.append(Restart("b7f3a9c2", "c0ffee00"))
    session.t += 4
    session.number = 0
    session.decode(5, 3, boot_id="c0ffee00")
    state = state_of(session)
    text = "\n".join("".join(t for t, _ in line) for line in overview_lines(state, 1000.0, 120, 33, BLOCKS))
    assert "UNKNOWN" in text
    assert "R engine restarted" in text
    assert len(state.epochs.epochs) == 1


def test_acceptance_by_position_for_this_epoch_and_the_one_before() -> None:
    text = acceptance(minutes(), width=120, height=33)
    assert "epoch 3 now  accept 2.40  tree 2/4/16" in text
    assert "epoch 2 before  accept 2.40  tree 2/4/16" in text
    assert "98% 2498/2546" in text
    assert "threshold 4 → 8 (spec auto, threshold 8, tree 2/4/16)" in text
    assert "the 1 is the bonus token" in text


def test_acceptance_of_an_epoch_without_a_verify() -> None:
    """B61: words, not zeros."""
    session = MadeSession()
    session.decode(5, 3)
    session.set(spec="off")
    session.decode(5, 3)
    text = acceptance(session)
    assert "nothing verified in this epoch" in text
    assert "none           n/a         n/a  spec auto → off" in text
    assert "0.00" not in text
    assert "nan" not in text.lower()


def test_acceptance_before_the_first_step() -> None:
    assert "nothing verified in this epoch" in acceptance(MadeSession())
    state = SessionState()
    lines = accept_lines(state, 1000.0, 80, 17, BLOCKS)
    assert "no step yet" in "".join(text for line in lines for text, _ in line)


def test_deep_trees_show_as_many_depths_as_fit() -> None:
    session = MadeSession()
    session.set(steps=16, topk=1, draft_tokens=17)
    for _ in range(30):
        session.step(3, 0, True, correct_by_position=[3, 2, *[1] * 14], correct_drafts=19)
    assert "deeper ones: enlarge the screen" in acceptance(session)
    assert "  16  " in acceptance(session, height=50)


def test_knob_epochs_are_newest_first() -> None:
    lines = acceptance(minutes()).splitlines()
    rows = [line for line in lines if line[:6].strip(" ›").isdigit() and "verif" not in line]
    numbers = [
        int(line[:6].strip(" ›")) for line in rows if len(line) > 60 and line[6:14].strip().endswith(("s", "min"))
    ]
    assert numbers == [3, 2, 1, 0]


def test_cost_does_not_grow_with_what_is_kept() -> None:
    """B103: after hours as many seconds are looked at as there are on the chart."""
    state = SessionState()
    for number in range(1, 20_001):
        state.apply(made.step(number, 1 + number % 8, t=made.T0 + number * 0.5), 1000.0)
    seen = CountedHistory(state.history)
    overview_lines(state, 1000.0, 120, 33, BLOCKS)
    assert 0 < seen.count <= 2 * 300, "the seconds on the chart, for the axis and its legend, and no others"
