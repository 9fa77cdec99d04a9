"""The stage trace of a step, in words."""

from __future__ import annotations

from typing import Any

import pytest

from probes.events import AlertEvent, StepEvent, StepShapes
from tests.workbench import made_events as made
from workbench.cell_text import width_of
from workbench.tui.plan_alerts import KEPT, PlanAlerts, alert_words
from workbench.tui.step_detail import step_lines
from workbench.tui.step_trace import mismatch_words, setter_of, stages

TRACE = {
    "decision": "above_threshold: engine.spec.policy:ThresholdPolicy.decide",
    "slots_expected": "engine.step_plan:make_plan",
    "slots_reserved": "engine.kv.ledger:Ledger.reserve",
    "slots_written": "engine.runner:Runner.run",
    "widths": "engine.step_plan:widths_of",
}


def the_story() -> StepEvent:
    """Ten requests, decided plain, and sixteen slots a request all the same."""
    return made.step(1200, 10, slots_reserved=160, slots_written=10, trace=TRACE, shapes=StepShapes(input_ids=[10]))


def test_the_160_against_10_story_names_both_numbers_and_who_made_each() -> None:
    first, second = mismatch_words(the_story())
    assert first == (
        "the plan expects 10 slots (engine.step_plan:make_plan), the allocator reserved 160 "
        "(engine.kv.ledger:Ledger.reserve): 1 against 16 a request, for 10 requests"
    )
    assert second.startswith(
        "the allocator reserved 160 slots (engine.kv.ledger:Ledger.reserve), the runner wrote 10 ("
    )


def test_rows_without_slots_are_a_mismatch_too() -> None:
    step = made.step(1, 10, shapes=StepShapes(input_ids=[10], out_cache_loc=[160]))
    assert mismatch_words(step) == [
        "the forward got 10 rows (input_ids) and 160 slots to write them to (out_cache_loc)"
    ]


def test_no_share_a_request_where_there_is_none() -> None:
    prompts = made.prefill(1, 300, slots_written=299)
    assert mismatch_words(prompts)[0].endswith("(the event does not say by whom)")


def test_every_stage_has_its_numbers_and_who_set_them() -> None:
    by_name = {stage.name: stage for stage in stages(the_story())}
    assert list(by_name) == ["schedule", "decide", "plan", "reserve", "draft", "run", "accept", "sync", "publish"]
    assert by_name["decide"].set_by == ("decision by engine.spec.policy:ThresholdPolicy.decide",)
    assert by_name["plan"].set_by == (
        "slots_expected by engine.step_plan:make_plan",
        "widths by engine.step_plan:widths_of",
    )
    assert [name for name, stage in by_name.items() if stage.is_wrong] == ["reserve", "run"]
    assert by_name["draft"].what == "nothing is drafted in this step"
    assert by_name["sync"].cpu_us is None


def test_a_tree_and_what_was_accepted_of_it() -> None:
    by_name = {stage.name: stage for stage in stages(made.step(1, 4))}
    assert by_name["draft"].what == "a tree, 4 children a node, 2 deep, 16 nodes a request with the root (eagle3)"
    assert by_name["accept"].what.startswith("6 of 60 drafts correct (by depth 4/2) in 4 verifies")


def test_unknown_stages_and_quantities_are_shown() -> None:
    step = made.step(1, 2, cpu_us={"run": 10, "sprout": 20}, trace={"sap": "tree.root:rise"})
    assert stages(step)[-1].name == "sprout"
    text = "\n".join("".join(word for word, _ in line) for line in step_lines(step, 80))
    assert "set sap by tree.root:rise" in text


def pane(step: StepEvent, width: int = 79) -> str:
    return "\n".join("".join(word for word, _ in line) for line in step_lines(step, width))


def test_two_clocks_stand_side_by_side_and_are_named() -> None:
    text = pane(made.gpu_step(7), 120)
    assert "5.8 ms by the CPU's clock, 4.9 of them waiting for the GPU; 5.8 ms on the GPU, by CUDA events" in text
    assert "the GPU waited 0.07 ms for this step: 1.2% of its time since the end of the step before" in text
    by_name = {stage.name: (stage.cpu_us, stage.gpu_us) for stage in stages(made.gpu_step(7))}
    assert by_name["run"] == (210, 4730)
    assert by_name["wait"] == (4900, None)
    assert "idle" not in by_name, "it is no stage"
    (run,) = (line for line in text.splitlines() if line.startswith(" run "))
    assert run.endswith("   0.21   4.73 ████████")


def test_prompts_have_a_stage_of_the_gpu_alone() -> None:
    step = made.prefill(1, gpu_us={"prefill": 2_000}, cpu_us={"run": 100, "wait": 10, "commit": 5})
    by_name = {stage.name: (stage.cpu_us, stage.gpu_us) for stage in stages(step)}
    assert by_name["prefill"] == (None, 2_000)


def test_requests_that_ended_in_flight_are_told() -> None:
    by_name = {stage.name: stage for stage in stages(made.gpu_step(1, overrun=2))}
    assert by_name["commit"].what.endswith("2 requests had ended before")


def test_a_cpu_engine_has_one_clock_and_no_word_of_a_gpu() -> None:
    text = pane(made.step(1, cpu_us={"run": 1000, "wait": 1, "commit": 100}))
    assert "GPU" not in text
    assert "CUDA" not in text


def test_after_an_idle_wait_the_gpu_had_nothing_to_wait_for() -> None:
    text = pane(made.gpu_step(1, gpu_us={"idle": 9_000_000, "run": 900}, round_us=0))
    assert "the engine had no work before this step" in text
    assert "9000" not in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "graph verify/16x4 hit, 6 of its 16 rows padding"),
        ({"requests": 16}, "graph verify/16x4 hit, no row padding"),
        ({"graph_hit": False, "shapes": StepShapes()}, "graph verify/16x4 MISS: not captured, so eager"),
        ({"graph": None, "graph_hit": None}, "40 rows written, eager"),
    ],
)
def test_the_graph_its_hit_and_its_padding(changes: dict[str, Any], words: str) -> None:
    by_name = {stage.name: stage for stage in stages(made.gpu_step(1, **changes))}
    assert words in by_name["run"].what


def test_setter_without_its_reason() -> None:
    assert setter_of(the_story(), "decision") == "engine.spec.policy:ThresholdPolicy.decide"
    assert setter_of(the_story(), "nothing") == ""


@pytest.mark.parametrize("width", [40, 63, 79, 120])
def test_no_line_is_wider_than_the_pane(width: int) -> None:
    for step in (
        the_story(),
        made.step(1, 4),
        made.gpu_step(3, 10),
        made.prefill(2, 3000, reason_detail="日本語 " * 30),
    ):
        assert all(sum(width_of(word) for word, _ in line) <= width for line in step_lines(step, width))


def plan_mismatch(step: int, **data: object) -> AlertEvent:
    given = {"quantity": "slots", "expected": 10, "expected_by": "a:decide", "found": 160, "found_by": "b:reserve"}
    return made.alert("step was not run", code="plan_mismatch", level="error", step=step, data=given | data)


def test_a_step_that_was_planned_again_tells_what_its_first_plan_had() -> None:
    """The engine throws the first plan away before anything runs: only its alert has both numbers."""
    alert = plan_mismatch(37)
    again = made.step(37, 10, spec=True, replanned=True)
    text = " ".join(" ".join(word for word, _ in line) for line in step_lines(again, 500, alert))
    assert "slots: 10 expected by a:decide, 160 found from b:reserve: 1 against 16 a request, for 10 requests" in text
    assert "then it was planned once more" in text
    unknown = " ".join(" ".join(word for word, _ in line) for line in step_lines(again, 500))
    assert "the alert is no longer known" in unknown


def test_alerts_are_found_by_boot_and_step_and_are_bounded() -> None:
    """B104."""
    alerts = PlanAlerts()
    alerts.take(made.alert(step=1))
    assert alerts.of(made.step(1)) is None
    for number in range(1, 2 * KEPT):
        alerts.take(plan_mismatch(number))
    assert alerts.of(made.step(1)) is None
    newest = alerts.of(made.step(2 * KEPT - 1))
    assert newest is not None
    assert alerts.of(made.step(2 * KEPT - 1, boot_id="other")) is None
    assert alert_words(newest).endswith("160 found from b:reserve")


def test_an_alert_without_numbers_keeps_its_words() -> None:
    assert alert_words(plan_mismatch(1, found=None)) == "step was not run"
