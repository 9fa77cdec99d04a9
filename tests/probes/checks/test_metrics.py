"""Metrics follow from events as ratios of sums; what cannot be said has no value, and says why."""

from __future__ import annotations

import subprocess
import sys

import pytest

from probes.checks import METRICS, Tally, quantile, read, read_all
from probes.events import DropEvent, KvUse, RequestEvent
from probes.subscriber import Gap, Malformed, Restart
from tests.workbench import made_events as made


def value_of(name: str, tally: Tally) -> float | None:
    return read(METRICS[name], tally).value


def why(name: str, tally: Tally) -> str:
    return read(METRICS[name], tally).why


def request(phase: str, t: float = made.T0, **given: object) -> RequestEvent:
    return RequestEvent(boot_id=made.BOOT, step=1, t=t, request_id="r", phase=phase, **given)  # type: ignore[arg-type]


def tally_of(*items: object) -> Tally:
    tally = Tally()
    tally.add_all(items)  # type: ignore[arg-type]
    return tally


def test_accept_length_is_a_ratio_of_sums_and_includes_the_bonus_token() -> None:
    tally = tally_of(
        made.step(1, 1, verified=1, correct_drafts=2, proposed=15),
        made.step(2, 3, verified=3, correct_drafts=0, proposed=45),
    )
    assert value_of("accept_length", tally) == pytest.approx(1.5), "not the mean of 3.0 and 1.0"
    assert value_of("accept_rate", tally) == pytest.approx(2 / 60)


def test_nothing_verified_is_no_value_not_zero_and_not_one() -> None:
    tally = tally_of(made.step(1, 8))
    assert value_of("accept_length", tally) is None
    assert why("accept_length", tally) == "nothing was verified"
    assert value_of("accept_rate", tally) is None
    assert value_of("spec_share", tally) == 0


def test_an_empty_tally_has_counts_of_zero_and_no_ratio() -> None:
    tally = Tally()
    for reading in read_all(tally):
        assert reading.value in (None, 0)
        assert (reading.value is None) == bool(reading.why), reading.metric.name
    assert value_of("gaps", tally) == value_of("steps", tally) == 0
    assert value_of("slot_mismatches", tally) is None, "no step has shown its counts"


def test_throughput_counts_the_seconds_watched_idle_ones_included() -> None:
    tally = tally_of(made.step(1, 8, t=made.T0), made.step(2, 8, t=made.T0 + 1))
    assert value_of("output_throughput", tally) == pytest.approx(16)
    tally.seconds = 8.0
    assert value_of("output_throughput", tally) == pytest.approx(2)


def test_steps_by_mode_and_switches_that_somebody_decided() -> None:
    tally = tally_of(
        made.prefill(1),
        made.step(2, 2),
        made.step(3, 2, spec=False, reason="near_end"),  # nobody decided this
        made.step(4, 8),
        made.step(5, 8, spec=False, mode="mixed"),
        made.step(6, 2),
    )
    counts = {name: value_of(name, tally) for name in ("steps", "spec_steps", "plain_steps", "prefill_steps")}
    assert counts == {"steps": 6, "spec_steps": 2, "plain_steps": 3, "prefill_steps": 1}
    assert value_of("switches", tally) == 2
    assert value_of("spec_share", tally) == pytest.approx(2 / 5)
    assert value_of("requests_max", tally) == 8
    assert value_of("queue_max", tally) == 2


def test_what_the_bus_lost() -> None:
    tally = tally_of(
        Gap("step", 5, 9, recovered=False),
        Gap("request", 1, 1, recovered=False),
        Gap("step", 10, 12, recovered=True),
        Malformed("not msgpack", 3, "step", 13),
        DropEvent(boot_id=made.BOOT, t=made.T0, topic="step", first_seq=20, count=4, total=4),
        Restart("old", "new"),
    )
    names = ("gaps", "lost", "late", "malformed", "dropped", "restarts")
    assert [value_of(name, tally) for name in names] == [2, 6, 3, 1, 4, 1]


def test_alerts_errors_and_mismatches() -> None:
    tally = tally_of(
        made.alert(),
        made.alert("10 expected, 160 found", code="plan_mismatch", level="error"),
        made.step(1, 3, slots_reserved=160),
        made.step(2, 3, replanned=True),
        made.knob_change(3, {"spec": "auto"}, {"spec": "off"}),
    )
    names = ("alerts", "errors", "plan_mismatches", "slot_mismatches", "replans", "knob_changes")
    assert [value_of(name, tally) for name in names] == [2, 1, 1, 1, 1, 1]


def test_times_of_requests() -> None:
    tally = tally_of(
        request("arrived"),
        request("first_token", ttft_ms=40.0),
        request("finished", ttft_ms=40.0, e2e_ms=240.0, output_tokens=11),
        request("arrived"),
        request("aborted"),
    )
    counts = [value_of(f"requests_{phase}", tally) for phase in ("arrived", "finished", "aborted")]
    assert counts == [2, 1, 1]
    assert value_of("ttft_ms_p50", tally) == 40
    assert value_of("e2e_ms_p99", tally) == 240
    assert value_of("tpot_ms_p50", tally) == pytest.approx(20)


def test_step_times_are_of_the_steps_own_stages() -> None:
    tally = tally_of(*(made.step(n, cpu_us={"run": 1000 * n}, round_us=9_000_000) for n in range(1, 101)))
    assert value_of("step_ms_p50", tally) == pytest.approx(50.5)
    assert value_of("step_ms_p99", tally) == pytest.approx(99.01)


def test_quantiles_are_linear_between_ranks() -> None:
    """As numpy's default: 1..5 at 90% is 4.6."""
    assert quantile([], 0.5) is None
    assert quantile([3.0], 0.99) == 3
    assert quantile([5, 1, 4, 2, 3], 0.5) == 3
    assert quantile([5, 1, 4, 2, 3], 0.9) == pytest.approx(4.6)


EMPTY = {"target": KvUse(used=0, total=1024), "draft": KvUse(used=0, total=1024)}


def test_slots_leaked_needs_an_idle_engine_whose_last_step_was_seen() -> None:
    assert why("slots_leaked", Tally()) == "no step ran"

    busy = tally_of(made.step(1, kv=EMPTY))
    assert why("slots_leaked", busy) == "the engine was not idle at the end"

    idle = tally_of(made.step(7, kv=EMPTY), made.heartbeat(step=7))
    assert value_of("slots_leaked", idle) == 0

    leaking = tally_of(
        made.step(7, kv={"target": KvUse(used=3, total=9), "draft": KvUse(used=1, total=9)}), made.heartbeat(step=7)
    )
    assert value_of("slots_leaked", leaking) == 4

    unseen = tally_of(made.step(7, kv=EMPTY), made.heartbeat(step=9))
    assert "the event of the last step (9) is missing" in why("slots_leaked", unseen)

    aborted = tally_of(made.step(7), request("aborted"), made.heartbeat(step=7))
    assert "aborted after the last step" in why("slots_leaked", aborted)

    restarted = tally_of(made.step(7, kv=EMPTY), Restart("a", "b"), made.heartbeat(step=0))
    assert why("slots_leaked", restarted) == "no step ran since the engine restarted"


def test_a_skewed_clock_gives_no_negative_span() -> None:
    """B101: the wall clock stepped back between two boots."""
    tally = tally_of(made.step(1, t=made.T0), Restart("a", "b"), made.step(1, t=made.T0 - 3600))
    assert tally.span == 3600


def test_gpu_idle_is_a_share_of_sums_without_idle_waits() -> None:
    tally = tally_of(
        made.gpu_step(1, gpu_us={"idle": 9_000_000, "run": 500}, round_us=0),
        made.gpu_step(2, gpu_us={"idle": 100, "run": 100}),
        made.gpu_step(3, gpu_us={"idle": 0, "run": 700, "draft": 100}),
    )
    assert value_of("gpu_idle", tally) == pytest.approx(0.1)
    assert value_of("gpu_ms_p50", tally) == pytest.approx(0.5)


def test_graph_misses_and_their_share_of_the_steps_that_looked_for_one() -> None:
    tally = tally_of(
        *(made.gpu_step(number) for number in (1, 2, 3)),
        made.gpu_step(4, graph_hit=False),
        made.prefill(5, scheduler="overlap", gpu_us={"prefill": 900}),
    )
    assert value_of("graph_misses", tally) == 1
    assert value_of("graph_hit_rate", tally) == pytest.approx(0.75)


def test_on_a_cpu_nothing_of_the_gpu_is_measured_which_is_no_pass() -> None:
    tally = tally_of(made.step(1), made.step(2))
    for name in ("gpu_idle", "gpu_ms_p99", "graph_misses", "graph_hit_rate"):
        assert value_of(name, tally) is None
        assert why(name, tally)


def test_simulated_is_said_by_the_hello_or_by_a_step() -> None:
    assert value_of("simulated", tally_of(made.step(1))) == 0
    assert value_of("simulated", tally_of(made.step(1, simulated=True))) == 1
    met = Tally()
    met.meet(made.hello(config=made.SIMULATED))
    assert value_of("simulated", met) == 1
    assert met.simulation == made.SIMULATION
    assert met.span == 0, "who it is, is no part of the window"
    met.add(made.step(1, simulated=True))
    assert met.simulation == made.SIMULATION, "the fuller words stay"


def test_every_metric_is_named_with_a_meaning_in_the_table_of_its_name() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert name.isidentifier()
        assert metric.meaning


def test_checks_stay_light() -> None:
    code = (
        "import sys, probes.checks; "
        "bad = {'torch', 'textual', 'rich', 'numpy', 'mcap', 'workbench', 'engine'} & set(sys.modules); "
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
