"""Reading recordings: whole ones, and what is left of others."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

from probes.events import StepEvent
from probes.subscriber import Gap, Malformed, Received, Restart
from tests.workbench import made_events as made
from tests.workbench.recording.made_recording import BOOTS, session, write
from workbench.recording.file_index import FOOTER_BYTES
from workbench.recording.reader import Recording
from workbench.recording.recording_error import RecordingError
from workbench.recording.writer import RecordingWriter


def items_of(path: Path, **kwargs: object) -> list[Received]:
    with Recording.open(path) as recording:
        return [item for _, item in recording.items(**kwargs)]  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "session.mcap")


def test_what_went_in_comes_out_in_order(path: Path) -> None:
    assert items_of(path) == session()


def test_topics_that_were_not_asked_for_are_not_there(tmp_path: Path) -> None:
    kept = items_of(write(tmp_path / "few.mcap", topics=("request",)))
    kinds = {type(item).__name__ for item in kept}
    assert kinds == {"RequestEvent", "HelloEvent", "KnobEvent", "AlertEvent", "Gap", "Restart", "Malformed"}


def test_info(path: Path) -> None:
    with Recording.open(path) as recording:
        info = recording.info
        assert (info.is_finished, info.is_being_written, info.missing) == (True, False, "")
        assert info.boots == list(BOOTS)
        assert info.counts["step"] == 58
        assert info.counts["gap"] == 2
        assert (info.about["engine"], info.about["model"], info.about["note"]) == ("demo", "smollm2-135m", "made")
        assert info.start == made.T0
        assert info.end == pytest.approx(made.T0 + 13.0)
        assert recording.lost() == 4


def test_a_span_and_some_topics(path: Path) -> None:
    with Recording.open(path) as recording:
        steps = list(recording.items(start=made.T0 + 0.5, end=made.T0 + 1.0, topics=("step",)))
        assert [item.step for _, item in steps if isinstance(item, StepEvent)] == [5, 6, 7, 8, 9]
        assert [t for t, _ in steps] == [pytest.approx(made.T0 + number / 10) for number in range(5, 10)]
        assert [type(item) for _, item in recording.items(topics=("gap", "restart"))] == [Gap, Gap, Restart]
        assert list(recording.items(start=made.T0 + 1000)) == []
        assert list(recording.items(end=made.T0 - 1)) == []
        with pytest.raises(ValueError, match="unknown topic 'stepp'; the topics are step,"):
            list(recording.items(topics=("stepp",)))


def test_before_is_what_a_walk_would_have_found(path: Path) -> None:
    with Recording.open(path) as recording:
        everything = list(recording.items(topics=("step",)))
        for t, _ in [*everything, (made.T0 - 1, None), (made.T0 + 99, None)]:
            for count in (1, 7, 100):
                assert recording.before(t, "step", count) == [pair for pair in everything if pair[0] <= t][-count:]
        assert recording.before(made.T0 + 99, "step", 0) == []
        ((_, hello),) = recording.before(made.T0 + 5, "hello", 1)
        assert hello == session()[0]


def test_marks_are_all_there_in_order(path: Path) -> None:
    with Recording.open(path) as recording:
        marks = recording.marks()
    assert [mark.kind for mark in marks] == [
        "switch",
        "knob",
        "switch",
        "gap",
        "alert",
        "restart",
        "bookmark",
    ]
    assert [mark.t for mark in marks] == sorted(mark.t for mark in marks)
    assert marks[0].text == "spec → plain: above_threshold: 8 decode requests > threshold 4"
    assert marks[1].text == "threshold 4 → 8 by ann (load test)"
    assert marks[3].text == "3 step events lost (28 to 30)"
    assert marks[-1].text == "the end"


def test_an_unfinished_one_has_all_that_was_flushed_and_says_so(tmp_path: Path) -> None:
    part = write(tmp_path / "x.mcap", finish=False)
    with Recording.open(part) as recording:
        assert not recording.info.is_finished
        assert "recorder was killed, and at most 0.3 s after" in recording.info.missing
        assert [item for _, item in recording.items()] == session()
        assert recording.info.counts["step"] == 58
        assert len(recording.marks()) == 6
    with pytest.raises(RecordingError, match=r"there is no .*x\.mcap; there is .*part, which was not finished"):
        Recording.open(tmp_path / "x.mcap")


def test_one_that_is_being_written_is_read_as_far_as_it_is(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "x.mcap", ("step",))
    writer.begin(made.hello())
    writer.write(made.step(1))
    writer.sink.flush()
    writer.write(made.step(2))  # in memory so far
    with Recording.open(writer.sink.file.part) as recording:
        assert recording.info.missing == "not finished: it is being recorded now"
        assert recording.info.counts == {"step": 1, "hello": 1}
    writer.finish()
    assert len(items_of(tmp_path / "x.mcap")) == 3


def test_cut_anywhere_it_opens_or_is_refused_in_words(path: Path) -> None:
    """B98: up to the last whole record, whatever is behind it."""
    data, whole = path.read_bytes(), session()
    cut = path.with_name("cut.mcap")
    longest = 0
    for size in sorted({*range(0, len(data), 397), *range(len(data) - FOOTER_BYTES - 9, len(data))}):
        cut.write_bytes(data[:size])
        try:
            found = items_of(cut)
        except RecordingError:
            assert size < 9  # not even the file's first record
            continue
        assert found == whole[: len(found)]
        assert len(found) >= longest
        longest = len(found)
        with Recording.open(cut) as recording:
            assert not recording.info.is_finished
            assert recording.info.missing
    assert longest == len(whole)


def test_damaged_anywhere_nothing_worse_than_words_happens(path: Path) -> None:
    data, rng = path.read_bytes(), random.Random(3)
    bad = path.with_name("bad.mcap")
    for _ in range(100):
        spoiled = bytearray(data)
        for _ in range(rng.choice((1, 1, 4))):
            spoiled[rng.randrange(len(spoiled))] ^= 1 << rng.randrange(8)
        bad.write_bytes(spoiled)
        with suppress(RecordingError), Recording.open(bad) as recording:
            list(recording.items())
            recording.before(made.T0 + 5, "step", 5)
            recording.marks()


def test_a_damaged_chunk_is_said_in_its_place(path: Path) -> None:
    with Recording.open(path) as recording:
        offset = recording.index.offsets[2]
        length = recording.index.lengths[2]
    data = bytearray(path.read_bytes())
    data[offset + length - 20] ^= 0xFF
    path.write_bytes(data)
    found = items_of(path)
    (damage,) = [item for item in found if isinstance(item, Malformed) and "chunk" in item.reason]
    assert f"the chunk at byte {offset} is damaged" in damage.reason
    assert [item for item in found if item != damage] != session()
    assert found[-1] == session()[-1]


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "is empty"), (b"PK\x03\x04" * 20, "is no recording"), (b"\x89MCAP0\r\n", "")]
)
def test_files_of_other_kinds(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.mcap"
    path.write_bytes(content)
    if words:
        with pytest.raises(RecordingError, match=words):
            Recording.open(path)
    else:
        with Recording.open(path) as recording:
            assert recording.info.missing == "not finished: it ends before the first event"


def test_what_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="there is no"):
        Recording.open(tmp_path / "none.mcap")
    with pytest.raises(RecordingError, match="Is a directory"):
        Recording.open(tmp_path)


def test_replay_order_is_that_of_boots_and_numbers_when_the_clock_was_set_back(tmp_path: Path) -> None:
    """B101: the second boot's events carry times an hour before the first's, and still come after them."""
    first = [made.step(number, t=made.T0 + number) for number in range(1, 6)]
    second = [made.step(number, t=made.T0 - 3600 + number, boot_id=BOOTS[1]) for number in range(1, 6)]
    items: list[Received] = [made.hello(), *first, Restart(*BOOTS), *second]
    path = write(tmp_path / "back.mcap", items)
    with Recording.open(path) as recording:
        timed = list(recording.items())
        assert [item for _, item in timed] == items
        times = [t for t, _ in timed]
        assert times == sorted(times)
        assert recording.info.seconds == pytest.approx(5 + 6.7 + 4)
        assert recording.before(times[-1], "step", 2) == timed[-2:]


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.mcap")
    with pytest.raises(RecordingError, match="is no file"):
        Recording.open(tmp_path / "x.mcap")


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="File name too long"):
        Recording.open(tmp_path / ("x" * 300))
