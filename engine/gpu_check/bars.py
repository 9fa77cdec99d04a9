"""What the engine has to reach on one H200, and whether a file of results says that it does. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from engine.gpu_check.check_file import CheckFile
from engine.gpu_check.floor_rate import floor_rate
from engine.gpu_check.sizes import THRESHOLD
from probes.ratio import Ratio

CLIENTS = (1, 16, 64, 128, 250)

VLLM = {
    "plain": (201, 2_918, 8_507, 12_578, 15_013),
    "eagle3": (398, 5_019, 11_102, 12_945, 13_621),
    "dynamic": (252, 3_761, 7_151, 11_222, 14_517),
    "off": (150, 1_549, 6_616, 9_739, 14_375),
}
"""vLLM 0.24, CUDA graphs and torch.compile on, the same work on one H200: output tokens/s by ``CLIENTS``.
``off``: drafter loaded, K = 0."""

LEAST_RATE = {"plain": (205, 2_950, 8_700, 13_000, 15_500), "eagle3": (430, 5_500, 11_800, 14_000, 15_000)}
"""Output tokens/s by ``CLIENTS``."""

LEAST_OF_FLOOR = 0.92
LEAST_OFF_OVER_PLAIN = 0.99
LEAST_THRESHOLD_OVER_CHOSEN = 0.98
LEAST_AUTO_OVER_BETTER = 0.95
MOST_IDLE = 0.03
LEAST_WATCHED = 0.99
MOST_EXCUSED = 0.03
GAPS = {"bfloat16": 0.5, "float32": 1e-3}
"""Gap of the reference's two likeliest tokens under which another token is excused."""

Word = Literal["reached", "missed", "not resolved", "not measured"]


@dataclass(frozen=True)
class Verdict:
    """One bar."""

    bar: str
    got: str
    word: Word

    @property
    def is_good(self) -> bool:
        return self.word == "reached"


def rates(file: CheckFile, clients: int) -> dict[str, dict[str, Any]]:
    """plain, eagle3, dynamic and off of a row, as far as they are measured: what `Side.column` gives."""
    off = file.value(f"sweep/{clients}/off over plain") or {}
    switched = file.value(f"sweep/{clients}/threshold over chosen") or {}
    found = {
        "plain": off.get("second"),
        "off": off.get("first"),
        "dynamic": switched.get("first"),
        "eagle3": file.value(f"sweep/{clients}/eagle3") or (switched.get("second") if clients <= THRESHOLD else None),
    }
    return {name: column for name, column in found.items() if column}


def plain_floor(file: CheckFile, clients: int) -> float | None:
    """Output tokens/s that the card allows without speculation."""
    return _floor(file, clients, 1, 1.0)


def verify_floor(file: CheckFile, clients: int, width: int, accept: float) -> float | None:
    """The same for verifies of ``width`` tokens that give ``accept`` each, drafts for nothing."""
    return _floor(file, clients, width, accept)


def _floor(file: CheckFile, clients: int, width: int, accept: float) -> float | None:
    prefill, step = file.value(f"floor/prefill/{clients}"), file.value(f"floor/step/{clients}x{width}")
    if prefill is None or step is None:
        return None
    return floor_rate(clients, file.sizes["output"], prefill["ms"] / 1e3, step["ms"] / 1e3, accept)


def verdicts(file: CheckFile) -> list[Verdict]:
    """Every bar. Rates are only judged of the full workload."""
    clients = [int(count) for count in file.sizes.get("clients", CLIENTS)]
    found = []
    if file.sizes.get("name") == "full":
        for name in LEAST_RATE:
            found += [_rate(file, name, count) for count in clients if count in CLIENTS]
        found += [_of_floor(file, count) for count in clients]
    for count in clients:
        off = file.value(f"sweep/{count}/off over plain")
        found.append(_ratio(f"off with the head / without, {count} clients", off, LEAST_OFF_OVER_PLAIN))
    for count in clients:
        switched = file.value(f"sweep/{count}/threshold over chosen")
        chosen = switched["chosen"] if switched else "the side it chose"
        found.append(_ratio(f"threshold / {chosen}, {count} clients", switched, LEAST_THRESHOLD_OVER_CHOSEN))
    found.append(_better(file))
    found += _exact(file)
    found.append(_clean(file))
    found.append(_idle(file, clients[-1]))
    watched = file.value(f"probe/{clients[-1]}")
    found.append(_ratio(f"all topics watched / nobody watching, {clients[-1]} clients", watched, LEAST_WATCHED))
    found.append(_tests(file))
    return found


def _missing(bar: str) -> Verdict:
    return Verdict(bar, "—", "not measured")


def _rate(file: CheckFile, name: str, clients: int) -> Verdict:
    least = dict(zip(CLIENTS, LEAST_RATE[name], strict=True))[clients]
    bar = f"{name}, {clients} clients: {least:,} tokens/s"
    column = rates(file, clients).get(name)
    if column is None:
        return _missing(bar)
    return Verdict(bar, f"{column['rate']:,.0f}", "reached" if column["rate"] >= least else "missed")


def _of_floor(file: CheckFile, clients: int) -> Verdict:
    bar = f"plain, {clients} clients: {LEAST_OF_FLOOR:.0%} of the floor"
    column, floor = rates(file, clients).get("plain"), plain_floor(file, clients)
    if column is None or floor is None:
        return _missing(bar)
    share = column["rate"] / floor
    return Verdict(bar, f"{share:.1%} of {floor:,.0f}", "reached" if share >= LEAST_OF_FLOOR else "missed")


def _ratio(name: str, value: dict[str, Any] | None, least: float) -> Verdict:
    bar = f"{name}: {least}"
    if value is None:
        return _missing(bar)
    ratio = Ratio(**value["ratio"])
    word = ratio.at_least(least)
    return Verdict(bar, str(ratio), "not resolved" if word.startswith("not resolved") else word)  # type: ignore[arg-type]


def best_threshold(file: CheckFile) -> int | None:
    """The largest load up to which speculating is at least as fast as not, at every load of the sweep; 0: at none.

    None where on or off was not measured at some load.
    """
    best = 0
    for clients in sorted(file.sizes.get("clients", ())):
        columns = rates(file, clients)
        if not {"off", "eagle3"} <= columns.keys():
            return None
        if columns["eagle3"]["rate"] < columns["off"]["rate"]:
            return best
        best = clients
    return best


def _better(file: CheckFile) -> Verdict:
    """Whether the policy, with the threshold that follows from the sweep, is as fast as the better side (B65).

    Then it chooses the better side everywhere, and what it loses is what it lost against the side that it chose.
    """
    bar = f"the better of on and off at every load, by a threshold: {LEAST_AUTO_OVER_BETTER}"
    pairs = [file.value(f"sweep/{clients}/threshold over chosen") for clients in file.sizes.get("clients", ())]
    best = best_threshold(file)
    if best is None or not pairs or not all(pairs):
        return _missing(bar)
    worst = min(pair["ratio"]["median"] for pair in pairs)
    got = f"threshold {best}, {worst:.3f} at worst"
    return Verdict(bar, got, "reached" if worst >= LEAST_AUTO_OVER_BETTER else "missed")


def _exact(file: CheckFile) -> list[Verdict]:
    found = []
    names = sorted(name for name in file.cells if name.startswith("exact/"))
    for name in names or ["exact/…"]:
        bar = f"{name.removeprefix('exact/')}: the CPU's float32 tokens, but for near-ties"
        value = file.value(name)
        if value is None:
            found.append(_missing(bar))
            continue
        good = value["decided"] == 0 and value["excused"] <= MOST_EXCUSED * value["positions"]
        got = f"{value['excused']} of {value['positions']} under a gap of {GAPS[value['dtype']]}"
        if value["decided"]:
            got += f", {value['decided']} above it"
        found.append(Verdict(bar, got, "reached" if good else "missed"))
    return found


def _clean(file: CheckFile) -> Verdict:
    bar = "compute-sanitizer memcheck finds nothing"
    runs = file.values("sanitizer")
    if not runs:
        return _missing(bar)
    errors = sum(run["errors"] for run in runs.values())
    return Verdict(bar, f"{errors} errors in {len(runs)} runs", "reached" if errors == 0 else "missed")


def _idle(file: CheckFile, clients: int) -> Verdict:
    bar = f"plain, {clients} clients: GPU idle between steps at most {MOST_IDLE:.0%}"
    share = rates(file, clients).get("plain", {}).get("idle")
    if share is None:
        return _missing(bar)
    return Verdict(bar, f"{share:.2%}", "reached" if share <= MOST_IDLE else "missed")


def _tests(file: CheckFile) -> Verdict:
    bar = "tests/gpu pass"
    runs = file.values("tests")
    if not runs:
        return _missing(bar)
    passed, failed, skipped = (sum(run[what] for run in runs.values()) for what in ("passed", "failed", "skipped"))
    got = f"{passed} passed, {failed} failed, {skipped} skipped"
    there_are = list(runs.values())[-1].get("files", [])  # as the newest run found them
    left = [name for name in there_are if f"tests/{name}" not in file.cells]
    if left:
        got += f"; not run: {', '.join(left)}"
    broken = any(cell.error is not None for name, cell in file.cells.items() if name.startswith("tests/"))
    if failed or broken or (not passed and not left):
        return Verdict(bar, got, "missed")
    return Verdict(bar, got, "not measured" if left else "reached")
