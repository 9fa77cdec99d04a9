"""The story of the design as a test: 10 requests x 16 draft tokens against 10 x 1, decided in time and too late."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import torch

from engine.llm import LLM
from engine.sampling_params import SamplingParams
from engine.spec.choice import SpecChoice
from engine.step_plan import StepPlan, make_plan
from probes.events import AlertEvent, RequestEvent
from tests.engine.tiny import (
    GREEDY,
    STORY,
    answers_of,
    both_schedulers,
    eagle_engine,
    host_worker,
    prompts,
    reference,
    scripted_engine,
    step_events,
    tokens,
)

pytestmark = both_schedulers

LONG = SamplingParams(max_tokens=400, temperature=0.0, ignore_eos=True)


def test_the_threshold_moves_across_ten_requests_a_hundred_times_in_each_direction() -> None:
    given = prompts(10, longest=30)
    llm, sink = eagle_engine({**STORY, "spec": "auto", "threshold": 16, "hysteresis": 0})
    step = 0

    def cross(llm: LLM) -> None:
        nonlocal step
        step += 1
        llm.set_knobs(threshold=16 if step % 2 else 4)

    completions = llm.generate(given, LONG, cross)
    assert [c.error for c in completions] == [None] * 10
    events = step_events(sink)
    modes = [e.mode for e in events if e.requests == 10]
    crossings = [pair for pair in pairwise(modes) if pair[0] != pair[1]]
    assert crossings.count(("spec", "plain")) >= 100
    assert crossings.count(("plain", "spec")) >= 100
    reserved = {e.slots_reserved for e in events if e.requests == 10}
    assert {10, 160} <= reserved
    assert all(e.slots_expected == e.slots_reserved == e.slots_written for e in events)
    assert llm.core.ledger.used == 0
    assert llm.core.ledger.pages_used == 0
    assert llm.core.worker.used_slots() == 0


def test_load_itself_crosses_the_threshold_a_hundred_times_in_each_direction() -> None:
    llm, sink = eagle_engine({**STORY, "spec": "auto", "threshold": 4, "hysteresis": 0}, max_running=16)
    core = llm.core
    given = prompts(210, longest=12)
    for i in range(2):
        core.add(f"base-{i}", given[i], SamplingParams(max_tokens=1000, temperature=0.0, ignore_eos=True))
    for burst in range(101):
        for i in range(8):
            core.add(f"b{burst}-{i}", given[(burst + i) % 200 + 2], SamplingParams(max_tokens=3, temperature=0.0))
        while any(
            r.request_id.startswith("b") and "-" in r.request_id and r.request_id[1].isdigit()
            for r in (*core.scheduler.running, *core.scheduler.waiting)
        ):
            core.step()
        core.step()
        core.step()
    core.abort_all()
    events = [e for e in step_events(sink) if e.mode in ("spec", "plain", "mixed")]
    on = [e.mode == "spec" for e in events]
    pairs = list(pairwise(on))
    assert pairs.count((True, False)) >= 100
    assert pairs.count((False, True)) >= 100
    assert all(e.slots_expected == e.slots_reserved == e.slots_written for e in events)
    assert (core.ledger.used, core.ledger.pages_used) == (0, 0)


def decide_late(plan: StepPlan) -> StepPlan:
    """The bug of the story: the width changes after the slots are reserved."""
    if not plan.speculates:
        return plan
    plain = SpecChoice(False, "above_threshold", "decided after the reservation")
    late = make_plan(plan.step, plain, [row.request for row in plan.decodes], plan.prefills, even=False)
    return replace(late, set_by="tests.engine.test_story:decide_late")


def test_a_decision_after_the_reservation_is_named_rolled_back_and_planned_once_more() -> None:
    given = prompts(10, longest=30)
    expected = reference(given)
    llm, sink = eagle_engine(STORY)
    core = llm.core
    faults = 0

    def once(plan: StepPlan) -> StepPlan:
        nonlocal faults
        if faults or len(plan.decodes) < 10:
            return plan
        faults += 1
        return decide_late(plan)

    core.after_reserve = once
    assert tokens(llm.generate(given, GREEDY)) == tokens(expected)
    alerts = [e for e in sink.events if isinstance(e, AlertEvent) and e.code == "plan_mismatch"]
    assert len(alerts) == 1
    assert alerts[0].data == {
        "quantity": "slots",
        "expected": 10,
        "expected_by": "tests.engine.test_story:decide_late",
        "found": 160,
        "found_by": "engine.kv.ledger:KvLedger.reserve",
        "attempt": 1,
    }
    assert "160" in alerts[0].message
    assert "was not run" in alerts[0].message
    assert "10 expected" in alerts[0].message
    assert [e.replanned for e in step_events(sink)].count(True) == 1
    assert core.ledger.pages_used == 0


def test_a_second_mismatch_fails_just_its_requests_and_the_engine_goes_on() -> None:
    given = prompts(10, longest=30)
    llm, sink = eagle_engine(STORY)
    core = llm.core

    def whenever_ten(plan: StepPlan) -> StepPlan:
        return decide_late(plan) if len(plan.decodes) == 10 else plan

    core.after_reserve = whenever_ten
    completions = llm.generate(given, GREEDY)
    assert {c.finish_reason for c in completions} == {"error"}
    assert all(c.error is not None and "160" in c.error for c in completions)
    alerts = [e for e in sink.events if isinstance(e, AlertEvent) and e.code == "plan_mismatch"]
    assert [a.data["attempt"] for a in alerts] == [1, 2]
    aborted = [e for e in sink.events if isinstance(e, RequestEvent) and e.phase == "aborted"]
    assert len(aborted) == 10
    assert (core.ledger.used, core.ledger.pages_used) == (0, 0)
    again = llm.generate(given[:3], GREEDY)
    assert tokens(again) == tokens(reference(given[:3]))


def test_a_write_that_was_not_reserved_fails_the_step_and_does_not_claim_that_it_never_ran() -> None:
    llm, sink = eagle_engine(STORY)
    core = llm.core

    def stray_write(plan: StepPlan) -> StepPlan:
        pool = host_worker(core).runner.pool
        _, heads, slots, head_dim = pool.data.shape
        pool.write(0, torch.tensor([slots - 1]), torch.zeros(1, heads, head_dim, dtype=pool.data.dtype))
        core.after_reserve = None
        return plan

    core.after_reserve = stray_write
    completion = llm.generate([[1, 2, 3]], GREEDY)[0]
    assert completion.error is not None
    assert "slots written: 3 expected" in completion.error
    assert "4 found" in completion.error
    assert "not run" not in completion.error
    alerts = [e for e in sink.events if isinstance(e, AlertEvent)]
    assert [a.code for a in alerts] == ["plan_mismatch"]
    assert (alerts[0].data["expected"], alerts[0].data["found"]) == (3, 4)
    assert (core.ledger.used, core.ledger.pages_used) == (0, 0)
    assert llm.generate([[1, 2, 3]], GREEDY)[0].error is None


def test_a_mismatch_leaves_requests_of_other_steps_alone() -> None:
    """A prefill that waits while the failing decodes are planned keeps its place and its answer."""
    given = prompts(3, longest=30)
    expected = reference(given)
    llm, _ = scripted_engine(answers_of(expected), STORY)
    core = llm.core
    core.add("a", given[0], GREEDY)
    core.step()
    core.add("waits", given[1], GREEDY)
    core.after_reserve = lambda plan: decide_late(plan)
    core.scheduler._prefill_ran_alone = True  # the next step is the decodes'
    outputs = core.step()
    assert [(o.request_id, type(o).__name__) for o in outputs] == [("a", "Failed")]
    core.after_reserve = None
    got: list[int] = []
    while core.has_work:
        got += [t for o in core.step() for t in getattr(o, "token_ids", [])]
    assert got == expected[1].token_ids
