"""Which steps a person wants to see: a few words, all of which must hold. Pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

from probes.events import Mode, StepEvent
from probes.gpu_time import busy_us, idle_share
from workbench.step_words import missed_graph, padding, slots_agree

Test = Callable[[StepEvent], bool]
Number = Callable[[StepEvent], float | None]

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}


def took_ms(step: StepEvent) -> float | None:
    """All stages of the step together, in milliseconds; None when they were not measured."""
    return sum(step.cpu_us.values()) / 1000 if step.cpu_us else None


def gpu_ms(step: StepEvent) -> float | None:
    """The step's stages by the GPU's clock, in milliseconds; None where there is no GPU."""
    return busy_us(step) / 1000 if step.gpu_us else None


def idle_percent(step: StepEvent) -> float | None:
    """How much of its time the GPU waited for the step; None where that was not measured."""
    share = idle_share(step)
    return None if share is None else 100 * share


def padded_rows(step: StepEvent) -> float | None:
    """Rows of the graph's bucket beyond the batch; None when the step ran in none."""
    found = padding(step)
    return None if found is None else found[0]


NUMBERS: dict[str, Number] = {
    "step": lambda step: step.step,
    "reqs": lambda step: step.requests,
    "prompt": lambda step: step.prefill_tokens,
    "slots": lambda step: step.slots_expected,
    "emit": lambda step: step.emitted,
    "acc": lambda step: step.accept_length,
    "ms": took_ms,
    "que": lambda step: step.queue,
    "correct": lambda step: step.correct_drafts,
    "discarded": lambda step: step.discarded,
    "lag": lambda step: step.draft_lag,
    "epoch": lambda step: step.knob_epoch,
    "gpu": gpu_ms,
    "idle": idle_percent,
    "pad": padded_rows,
}
"""The numbers that can be compared, by the word of the table's column where there is one."""
FLAGS: dict[str, Test] = {
    "mismatch": lambda step: not slots_agree(step) or step.replanned,  # also of a first plan that was thrown away
    "replanned": lambda step: step.replanned,
    "miss": missed_graph,
    "simulated": lambda step: step.simulated,
}
MODES = get_args(Mode)
ALLOWED = (
    f"numbers: {' '.join(NUMBERS)} with = != < <= > >=; mode= or reason= with a word; "
    f"{', '.join(FLAGS)}; any other word is looked for in mode and reason"
)


class FilterError(ValueError):
    """A word of a filter that means nothing; the message says what is allowed."""


@dataclass(frozen=True)
class StepFilter:
    """Words and what they ask of a step."""

    text: str
    tests: tuple[Test, ...]

    def matches(self, step: StepEvent) -> bool:
        return all(test(step) for test in self.tests)


def parse_filter(text: str) -> StepFilter | None:
    """The filter that the words describe; None when there are none.

    Raises:
        FilterError: naming the word and what is allowed in its place.
    """
    words = text.split()
    return StepFilter(" ".join(words), tuple(_test(word) for word in words)) if words else None


def _test(word: str) -> Test:
    if word in FLAGS:
        return FLAGS[word]
    parts = re.fullmatch(r"(\w*)(<=|>=|!=|==|<|>|=)(.*)", word)
    if parts is None or word == parts[2]:  # a sign alone is a word of the reasons
        return _has_text(word)
    name, sign, value = parts[1], parts[2].replace("==", "="), parts[3]
    if name in ("mode", "reason"):
        return _has_word(name, sign, value)
    if name in NUMBERS:
        return _compares(name, sign, value)
    raise FilterError(f"{name or word} is no field of a step. {ALLOWED}")


def _has_word(name: str, sign: str, value: str) -> Test:
    if sign not in ("=", "!="):
        raise FilterError(f"{name} is a word: use {name}= or {name}!=")
    if name == "mode" and value not in MODES:
        raise FilterError(f"mode is one of {', '.join(MODES)}, not {value!r}")
    if not value:
        raise FilterError("reason= needs a code, such as reason=memory or reason=above_threshold")
    field = operator.attrgetter(name)
    wanted = sign == "="
    return lambda step: (field(step) == value) is wanted


def _compares(name: str, sign: str, value: str) -> Test:
    read = NUMBERS[name]
    if value == "none" and sign in ("=", "!="):
        return lambda step: (read(step) is None) is (sign == "=")
    try:
        limit = float(value)
    except ValueError:
        more = ", or none for steps without one" if name in ("acc", "ms", "gpu", "idle", "pad") else ""
        raise FilterError(f"{name}{sign} needs a number{more}, not {value!r}") from None
    compare = COMPARISONS[sign]

    def test(step: StepEvent) -> bool:
        found = read(step)
        return found is not None and compare(found, limit)

    return test


def _has_text(word: str) -> Test:
    wanted = word.casefold()
    return lambda step: wanted in f"{step.mode} {step.reason} {step.reason_detail}".casefold()
