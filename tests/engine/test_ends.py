"""How requests end: stops inside accepted runs, budgets, aborts, and what is counted when they do."""

from __future__ import annotations

import time
from dataclasses import replace

import msgspec
import pytest

from engine.event_sink import MemorySink
from engine.invariants import check_invariants
from engine.ipc import Output
from engine.llm import LLM
from engine.sampling_params import SamplingParams
from probes.events import RequestEvent, RowsEvent
from tests.engine.tiny import (
    CHAIN,
    DEEP,
    GREEDY,
    STORY,
    answers_of,
    both_schedulers,
    eagle_engine,
    plain_engine,
    prompts,
    reference,
    scripted_engine,
    step_events,
    tiny_config,
    tiny_target,
    tokens,
)

pytestmark = both_schedulers

CHAIN_5 = {"steps": 5, "topk": 1, "draft_tokens": 6}


class StageSink(MemorySink):
    """Keeps the stages too, as the heartbeat would say them."""

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[str] = []

    def stage(self, name: str, step: int) -> None:
        self.stages.append(name)


@pytest.mark.parametrize("offset", range(6))
def test_a_stop_token_at_every_offset_of_a_verify_block_ends_the_output_there(offset: int) -> None:
    """B01: oracle draft, K=5; nothing behind the first stop token is emitted, counted or kept."""
    prompt = next(p for p in prompts(40, seed=21) if len(set(reference([p])[0].token_ids[:12])) == 12)
    free = reference([prompt])[0].token_ids
    stop = free[1 + offset]  # the prefill emits free[0]; the first verify covers free[1..6]
    params = msgspec.structs.replace(GREEDY, stop_token_ids=(stop,))
    expected = plain_engine().generate([prompt], params)[0]
    llm, sink = scripted_engine({tuple(prompt): free}, CHAIN_5)
    got = llm.generate([prompt], params)[0]
    assert got.token_ids == expected.token_ids == free[: 2 + offset]
    assert (got.finish_reason, got.stop_reason) == ("stop", stop)
    assert llm.core.ledger.pages_used == 0
    events = step_events(sink)
    assert sum(e.emitted for e in events) == len(got.token_ids)
    verified = [e for e in events if e.verified]
    assert verified[0].discarded == 5 - offset  # with overlap a step planned past the stop is discarded as a whole


def test_the_models_own_end_token_stops_unless_ignored() -> None:
    """B01: the same for the end token of the model, with trees."""
    prompt = prompts(1, seed=22)[0]
    free = reference([prompt])[0].token_ids
    target = tiny_target()
    at = free.index(free[9])
    tokenizer = type(target.tokenizer)(target.tokenizer._backend, [free[9]])
    llm, _ = scripted_engine({tuple(prompt): free}, DEEP)
    core = llm.core
    core._admission._eos = tokenizer.eos_token_ids
    stopped = llm.generate([prompt], msgspec.structs.replace(GREEDY, ignore_eos=False))[0]
    assert stopped.token_ids == free[: at + 1]
    assert stopped.finish_reason == "stop"
    assert llm.generate([prompt], GREEDY)[0].token_ids == free


@pytest.mark.parametrize("steps", [3, 5, 7])
def test_delivered_tokens_equal_max_tokens_whatever_the_depth(steps: int) -> None:
    """B03: max_tokens 1..40, K = 3, 5, 7; logprob entries, usage and the bus all say the same."""
    given = [[*prompts(1, seed=23)[0], i] for i in range(40)]
    params = [SamplingParams(max_tokens=i + 1, temperature=0.0, ignore_eos=True, logprobs=1) for i in range(40)]
    answers = answers_of(reference(given, SamplingParams(max_tokens=40, temperature=0.0, ignore_eos=True)))
    llm, sink = scripted_engine(answers, {"steps": steps, "topk": 1, "draft_tokens": steps + 1})
    completions = llm.generate(given, params)
    assert [len(c.token_ids) for c in completions] == list(range(1, 41))
    assert [len(c.logprobs) for c in completions] == list(range(1, 41))
    assert {c.finish_reason for c in completions} == {"length"}
    finished = [e for e in sink.events if isinstance(e, RequestEvent) and e.phase == "finished"]
    assert sorted(e.output_tokens for e in finished) == list(range(1, 41))
    assert sum(e.emitted for e in step_events(sink)) == sum(range(1, 41))


def test_emitted_tokens_on_the_bus_are_the_completion_tokens_also_with_early_stops() -> None:
    """B04: verified but cut tokens stand only in `discarded`."""
    given = prompts(12, seed=24)
    free = reference(given)
    llm, sink = scripted_engine(answers_of(free), DEEP)
    params = [msgspec.structs.replace(GREEDY, stop_token_ids=(c.token_ids[4 + i],)) for i, c in enumerate(free)]
    completions = llm.generate(given, params)
    events = step_events(sink)
    assert sum(e.emitted for e in events) == sum(len(c.token_ids) for c in completions)
    assert sum(e.discarded for e in events) > 0
    verified = sum(e.correct_drafts + e.verified for e in events)
    from_prefill = sum(1 for _ in completions)
    assert sum(e.emitted + e.discarded for e in events) == verified + from_prefill + sum(
        e.requests - e.verified - e.overrun for e in events
    )


def test_a_stop_string_inside_an_accepted_run_cuts_text_tokens_and_logprobs_alike() -> None:
    """B05: over a token border, with logprobs; the next request with the same seed is not affected."""
    prompt = prompts(1, seed=25)[0]
    params = SamplingParams(max_tokens=24, seed=5, ignore_eos=True)
    free = reference([prompt], params)[0]
    target = tiny_target()
    pieces = [target.tokenizer.decode([t]) for t in free.token_ids]
    at = next(i for i in range(4, 20) if all(p.isprintable() and p and p != "\ufffd" for p in pieces[i : i + 2]))
    stop = pieces[at][-1] + pieces[at + 1][0]
    assert target.tokenizer.decode(free.token_ids).count(stop) >= 1
    stopping = msgspec.structs.replace(params, stop=(stop,), logprobs=2)
    expected = plain_engine().generate([prompt], stopping)[0]
    llm, _ = scripted_engine({tuple(prompt): free.token_ids}, CHAIN_5)
    got = llm.generate([prompt], stopping)[0]
    assert stop not in got.text
    assert (got.text, got.token_ids, got.stop_reason) == (expected.text, expected.token_ids, stop)
    assert len(got.logprobs) == len(got.token_ids)
    assert llm.generate([prompt], params)[0].token_ids == free.token_ids


def test_logprobs_are_the_same_with_speculation_on_and_off() -> None:
    """B07, B08: greedy and sampled, taken before temperature and filters."""
    given = prompts(6, seed=26)
    for params in (
        msgspec.structs.replace(GREEDY, logprobs=5),
        SamplingParams(max_tokens=24, temperature=0.5, top_k=8, seed=3, logprobs=5, ignore_eos=True),
    ):
        expected = reference(given, params)
        llm, _ = scripted_engine(answers_of(expected), DEEP, right=3)
        for got, wanted in zip(llm.generate(given, params), expected, strict=True):
            assert [e.top_ids for e in got.logprobs] == [e.top_ids for e in wanted.logprobs]
            assert [e.chosen for e in got.logprobs] == pytest.approx([e.chosen for e in wanted.logprobs], abs=1e-9)
            assert all(e.chosen < 0 for e in got.logprobs)


@pytest.mark.parametrize("page_size", [1, 16, 64])
def test_the_idle_pool_returns_exactly_to_its_start(page_size: int) -> None:
    """B30: 200 short requests of odd lengths, pages of 1, 16 and 64."""
    given = [[i % 256] * (i % 13 + 1) + [i % 251] for i in range(200)]
    params = [SamplingParams(max_tokens=i % 7 + 1, temperature=0.0, ignore_eos=True) for i in range(200)]
    llm, sink = eagle_engine(STORY, page_size=page_size, max_running=24)
    free = llm.core.ledger.allocator.free_pages
    completions = llm.generate(given, params)
    assert [len(c.token_ids) for c in completions] == [p.max_tokens for p in params]
    assert llm.core.ledger.allocator.free_pages == free
    assert llm.core.reporter.kv_use()["target"].used == llm.core.reporter.kv_use()["draft"].used == 0
    assert step_events(sink)[-1].kv["target"].used == 0


@pytest.mark.parametrize("when", ["queued", "mid_chunk", "decoding", "with_debt"])
def test_an_abort_frees_everything_wherever_the_request_is(when: str) -> None:
    """B31: queued, in mid chunk, between verifies, with rows waiting for the draft; the neighbour is not affected."""
    neighbour, victim = prompts(1, longest=30, seed=27)[0], [7] * 100
    expected = reference([neighbour])[0].token_ids
    llm, sink = eagle_engine({**STORY, "spec": "off" if when == "with_debt" else "on"}, prefill_chunk=40, max_running=2)
    core = llm.core
    got: list[int] = []

    def step() -> None:
        got.extend(t for o in core.step() if isinstance(o, Output) and o.request_id == "n" for t in o.token_ids)

    core.add("n", neighbour, GREEDY)
    request = core.add("victim", victim, GREEDY)
    for _ in range({"queued": 0, "mid_chunk": 1, "decoding": 8, "with_debt": 8}[when]):
        step()
    assert request.in_prefill is (when in ("queued", "mid_chunk"))
    assert core.abort("victim") is True
    assert core.abort("victim") is False
    check_invariants(core.scheduler.running, core.ledger, core.worker)
    while core.has_work:
        step()
    assert got == expected
    assert (core.ledger.used, core.ledger.pages_used) == (0, 0)
    phases = [e.phase for e in sink.events if isinstance(e, RequestEvent) and e.request_id == "victim"]
    assert phases.count("aborted") == 1


def test_an_abort_of_the_last_request_leaves_the_engine_idle() -> None:
    """Clients that all leave: no step follows, and a stage left standing would pass for a stuck engine."""
    sink = StageSink()
    core = LLM(tiny_target(), sink=sink, config=tiny_config({"spec": "off"}, draft_model="none")).core
    core.add("a", [1, 2, 3], GREEDY)
    core.add("b", [4, 5, 6], GREEDY)
    core.step()
    core.abort("a")
    assert sink.stages[-1] != "idle"  # the other one goes on
    core.abort("b")
    assert sink.stages[-1] == "idle"
    time.sleep(0.05)
    core.add("c", [1, 2, 3], GREEDY)
    core.step()
    assert step_events(sink)[-1].round_us == 0  # the wait was no step's


def test_two_hundred_requests_of_one_token_all_finish_without_acceptance_data() -> None:
    """B39: max_tokens=1; acceptance is no data, not 0 or NaN."""
    given = [[i % 256, i // 256, 3] for i in range(200)]
    llm, sink = eagle_engine(STORY)
    completions = llm.generate(given, SamplingParams(max_tokens=1, temperature=0.0, ignore_eos=True))
    assert [len(c.token_ids) for c in completions] == [1] * 200
    assert {c.accept_length for c in completions} == {None}
    assert {e.accept_length for e in step_events(sink)} == {None}
    finished = [e for e in sink.events if isinstance(e, RequestEvent) and e.phase == "finished"]
    assert {e.accept_length for e in finished} == {None}


def test_a_draft_that_always_proposes_the_stop_token_ends_nothing() -> None:
    """B40: the target rejects it, so the request goes on as without speculation."""
    given = prompts(6, seed=28)
    stop = 250
    params = msgspec.structs.replace(GREEDY, stop_token_ids=(stop,))
    for shape in (CHAIN, STORY):
        llm, _ = scripted_engine({}, shape, always=stop)
        assert tokens(llm.generate(given, params)) == tokens(plain_engine().generate(given, params))


def test_accept_length_of_hostile_and_oracle_drafts() -> None:
    """B45: hostile: rate 0, length 1; oracle: rate 1, length K + 1, as long as nothing is cut."""
    given = prompts(4, seed=29)
    params = SamplingParams(max_tokens=25, temperature=0.0, ignore_eos=True)  # 1 of the prefill, 4 verifies of 6
    answers = answers_of(reference(given, params))
    for right, length, rate in ((0, 1.0, 0.0), (1 << 30, 6.0, 1.0)):
        llm, sink = scripted_engine(answers, CHAIN_5, right=right)
        completions = llm.generate(given, params)
        assert {c.accept_length for c in completions} == {length}
        events = [e for e in step_events(sink) if e.verified]
        assert {e.accept_length for e in events} == {length}
        assert sum(e.correct_drafts for e in events) / sum(e.proposed for e in events) == rate
        by_position = [sum(counts) for counts in zip(*(e.correct_by_position for e in events), strict=True)]
        assert by_position == ([] if right == 0 else [sum(e.verified for e in events)] * 5)


def test_without_room_to_verify_the_step_is_plain_and_says_so() -> None:
    """B46: the pool is filled so that a verify cannot allocate: plain with reason memory, no output changes."""
    given = [[i, 1, 2, 3, 4, 5, 6] for i in range(8)]
    params = SamplingParams(max_tokens=26, temperature=0.0, ignore_eos=True)  # 7 + 26 - 1 = 32 slots: two pages exactly
    expected = reference(given, params)
    llm, sink = scripted_engine(answers_of(expected), {**STORY, "spec": "on"}, kv_tokens=8 * 32, page_size=16)
    assert tokens(llm.generate(given, params)) == tokens(expected)
    events = step_events(sink)
    short = [e for e in events if e.reason == "memory"]
    assert short
    assert {e.mode for e in short} == {"plain"}
    assert "KV pages" in short[0].reason_detail
    assert any(e.mode == "spec" for e in events)
    assert llm.core.ledger.pages_used == 0


def test_requests_wait_for_room_and_all_finish_as_in_a_big_pool() -> None:
    """B46: a pool too small for all: the others wait, nobody's output changes; B42: one running request works too."""
    given = prompts(12, longest=40, seed=30)
    expected = tokens(reference(given))
    for options in ({"kv_tokens": 160}, {"max_running": 1}):
        llm, sink = eagle_engine(STORY, **options)
        assert tokens(llm.generate(given, GREEDY)) == expected
        assert max(e.queue for e in step_events(sink)) > 0


def test_a_prompt_near_the_context_ends_there_with_length() -> None:
    """B21: the lookahead may pass the end of the context; the answer may not."""
    for room in range(1, 20):
        llm, _ = eagle_engine(STORY, max_model_len=64)
        got = llm.generate([[9] * (64 - room)], SamplingParams(max_tokens=500, temperature=0.0, ignore_eos=True))[0]
        assert (len(got.token_ids), got.finish_reason) == (room, "length")


def test_rows_are_published_only_while_somebody_wants_them_and_ids_only_when_asked() -> None:
    given = prompts(3, seed=32)
    llm, sink = eagle_engine(STORY)
    llm.generate(given, GREEDY)
    rows = [e for e in sink.events if isinstance(e, RowsEvent)]
    assert rows
    assert all(row.token_ids is None for e in rows for row in e.rows)
    sink._rows = False
    count = len(sink.events)
    llm.generate(given, GREEDY)
    assert not [e for e in sink.events[count:] if isinstance(e, RowsEvent)]
    telling, sink = eagle_engine(STORY, publish_tokens=True)
    telling.generate(given[:1], GREEDY)
    told = [t for e in sink.events if isinstance(e, RowsEvent) for row in e.rows for t in row.token_ids or []]
    assert told == tokens(reference(given[:1]))[0][1:]


def test_speculation_switched_off_shows_no_acceptance_and_reserves_one_slot_a_request() -> None:
    """B53, B58, B61: null, never 0 or NaN; spec_info absent; reservations are those of a plain engine."""
    given = prompts(5, seed=33)
    llm, sink = eagle_engine({**STORY, "spec": "off"})
    llm.generate(given, GREEDY)
    for event in step_events(sink):
        assert event.accept_length is None
        assert event.spec_info is None
        assert event.slots_reserved == event.requests + event.prefill_tokens
        assert event.proposed == event.verified == 0
        assert event.reason == "spec_off"


def test_a_request_that_can_never_fit_is_refused_at_once() -> None:
    from engine.admission import RequestRefusedError

    llm, _ = eagle_engine(STORY, kv_tokens=64)
    for prompt, params, words in (
        ([1] * 60, replace_max(GREEDY, 50), "KV slots"),
        ([], GREEDY, "empty"),
        ([99999], GREEDY, "outside the vocabulary"),
        ([1] * 1024, GREEDY, "1024"),
        ([1], msgspec.structs.replace(GREEDY, top_p=0.0), "top_p"),
        ([1], msgspec.structs.replace(GREEDY, stop_token_ids=(-1,)), "stop_token_ids"),
    ):
        with pytest.raises(RequestRefusedError, match=words):
            llm.core.add("x", prompt, params)
    assert not llm.core.has_work


def replace_max(params: SamplingParams, max_tokens: int) -> SamplingParams:
    return msgspec.structs.replace(params, max_tokens=max_tokens)


def test_plans_cannot_be_changed() -> None:
    llm, _ = eagle_engine(STORY)
    plans = []
    llm.core.after_reserve = lambda plan: plans.append(plan) or plan  # type: ignore[func-returns-value]
    llm.generate([[1, 2, 3]], GREEDY)
    with pytest.raises(AttributeError):
        plans[0].step = 5  # type: ignore[misc]
    assert replace(plans[0], step=5).step == 5
