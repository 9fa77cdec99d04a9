"""What the demo found, as JSON for programs, and whether all was well."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from probes.ci.comparison import Tally
from probes.ci.near_ties import limit_for
from probes.simulation import UNSAID
from workbench.demo.step_sums import StepSums
from workbench.demo.verdict import Verdict, judge, undecided
from workbench.exit_codes import ExitCode

NOISY = 2.5
"""Spread of like steps above which a figure of a single run means little."""


@dataclass
class ModeOutcome:
    """One setting of the knob ``spec``: off, on or auto."""

    name: str
    load: StepSums
    compared: Tally
    checks: StepSums
    """Steps of the comparison's continuations: their slots are checked, their pace does not count."""

    @property
    def slots_lost(self) -> int:
        """KV slots still in use when the last request had ended."""
        return self.checks.in_use if self.checks.steps else self.load.in_use

    @property
    def miscounted(self) -> list[int]:
        """Steps whose slots expected, reserved and written differ."""
        return self.load.miscounted + self.checks.miscounted

    @property
    def is_well(self) -> bool:
        return self.compared.identical and not self.slots_lost and not self.miscounted

    def tok_s(self, requests: int) -> float | None:
        """Tokens a second in steps of so many decode requests."""
        pace = self.load.by_requests.get(requests)
        return None if pace is None else pace.typical_tok_s


@dataclass
class Outcome:
    """Of the whole demo."""

    engine: str
    model: dict[str, Any]
    draft: dict[str, Any]
    knobs: dict[str, Any]
    levels: list[int]
    tokens: int
    modes: list[ModeOutcome] = field(default_factory=list)
    events_lost: int = 0
    """Events that neither came nor could be fetched again: the sums then are too low."""
    errors: list[str] = field(default_factory=list)
    """Error alerts that the engine published."""
    disturbances: list[str] = field(default_factory=list)
    """Knobs that somebody else turned meanwhile: what was measured is then not what the table says."""
    missing: list[str] = field(default_factory=list)
    """Settings that an early end left out."""
    how_to_set: str = "specwb serve"
    """Command that a knob's new value is put behind: the demo's engine ends with the demo."""
    simulation: str = ""
    """What is not real in the engine, by its own word; empty when it says nothing of the kind."""

    @property
    def what_is_simulated(self) -> str:
        """By the engine's own word, or by its steps'; empty when nothing is."""
        return self.simulation or (UNSAID if any(mode.load.simulated for mode in self.modes) else "")

    @property
    def dtype(self) -> str:
        return str(self.model.get("dtype", ""))

    @property
    def identical(self) -> bool:
        return bool(self.modes) and all(mode.compared.identical for mode in self.modes)

    @property
    def is_well(self) -> bool:
        """Nothing was found wrong; an early end by the person is no fault of the engine."""
        return bool(self.modes or self.missing) and all(mode.is_well for mode in self.modes) and not self.errors

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.OK if self.is_well else ExitCode.FALSE

    @property
    def verdict(self) -> Verdict:
        paces = {mode.name: {n: mode.tok_s(n) for n in self.levels} for mode in self.modes}
        known = {name: {n: tok_s for n, tok_s in found.items() if tok_s is not None} for name, found in paces.items()}
        found = judge(known.get("off", {}), known.get("on", {}), int(self.knobs["threshold"]), self.how_to_set)
        if self.is_noisy:
            return undecided(found.ratios, "run it again on a quieter machine")
        if self.disturbances:
            return undecided(found.ratios, "run it again, and leave the knobs alone meanwhile")
        return found

    @property
    def is_noisy(self) -> bool:
        """Steps that should take alike did not: no figure can be believed."""
        return self.spread > NOISY

    @property
    def spread(self) -> float:
        """Of the time of steps that should take alike, the worst found: says how quiet the machine was.

        Not of auto, which at one number of requests may run both kinds of steps.
        """
        alike = [mode for mode in self.modes if mode.name != "auto"]
        paces = [mode.load.by_requests[level] for mode in alike for level in self.levels]
        return max((pace.spread for pace in paces if pace.spread is not None), default=1.0)

    def as_json(self) -> dict[str, Any]:
        """The final table, and what it was measured on."""
        return {
            "engine": self.engine,
            "model": self.model,
            "draft": self.draft,
            "knobs": self.knobs,
            "simulated": bool(self.what_is_simulated),
            "simulation": self.what_is_simulated or None,
            "levels": self.levels,
            "tokens_per_request": self.tokens,
            "near_tie_limit": limit_for(self.dtype),
            "modes": {mode.name: self._mode_json(mode) for mode in self.modes},
            "identical": self.identical,
            "slots_lost": sum(mode.slots_lost for mode in self.modes),
            "events_lost": self.events_lost,
            "errors": self.errors,
            "disturbances": self.disturbances,
            "step_time_spread": round(self.spread, 2),
            "pays_up_to": self.verdict.pays_up_to,
            "on_over_off": {str(requests): round(ratio, 3) for requests, ratio in self.verdict.ratios.items()},
            "verdict": self.verdict.text,
        }

    def _mode_json(self, mode: ModeOutcome) -> dict[str, Any]:
        by_requests = {str(level): _rounded(mode.tok_s(level)) for level in sorted(set(self.levels))}
        return {
            "tok_s": _rounded(mode.load.pace.tok_s),
            "tok_s_by_requests": by_requests,
            "accept_length": _rounded(mode.load.accept_length),
            "switches": mode.load.switches,
            "slots_lost": mode.slots_lost,
            "steps_miscounted": mode.miscounted,
            "identical": mode.compared.identical,
            "outputs_compared": mode.compared.outputs,
            "tokens_compared": mode.compared.tokens,
            "near_ties_excused": mode.compared.excused,
            "differences": mode.compared.differences,
        }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
