"""Whether speculation pays on this machine, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PAYS = 1.05
"""Ratio on/off from which a gain is believed; one run says no more than that."""


@dataclass(frozen=True)
class Verdict:
    """Up to how many requests in flight speculation was faster than none."""

    pays_up_to: int | None
    """None: at no number."""
    ratios: dict[int, float]
    """Decode requests in flight -> tokens a second with speculation on / off."""
    text: str


def judge(
    off: Mapping[int, float], on: Mapping[int, float], threshold: int, how_to_set: str = "specwb serve"
) -> Verdict:
    """Compare paces by decode requests in flight.

    Args:
        off, on: decode requests -> tokens a second.
        threshold: of the policy, to say whether it fits.
        how_to_set: command that ``threshold=N`` is put behind.
    """
    ratios = {requests: on[requests] / off[requests] for requests in sorted(off.keys() & on.keys())}
    if not ratios:
        return Verdict(None, {}, "too few steps to tell whether speculation pays; ask for more with --tokens")
    said = "on is " + ", ".join(
        f"{ratio:.2f}x{' off' if index == 0 else ''} at {clients_text(requests) if index == 0 else requests}"
        for index, (requests, ratio) in enumerate(ratios.items())
    )
    paying = [requests for requests, ratio in ratios.items() if ratio >= PAYS]
    losing = [requests for requests in ratios if requests not in paying]
    if not paying:
        text = f"speculation does not pay on this machine: {said}; `{how_to_set} threshold=0` keeps it off"
        return Verdict(None, ratios, text)
    if losing and losing[0] < paying[0]:
        text = f"no clear answer, speculation pays at {clients_text(paying[0])} and not at {losing[0]}: {said}"
        return Verdict(None, ratios, f"{text}; run it again on a quiet machine")
    loses_at = losing[0] if losing else None
    up_to = max(requests for requests in paying if loses_at is None or requests < loses_at)
    fits = up_to <= threshold and (loses_at is None or threshold < loses_at)
    advice = f"threshold {threshold} fits" if fits else f"try `{how_to_set} threshold={up_to}` (it is {threshold})"
    return Verdict(up_to, ratios, f"speculation pays here at up to {clients_text(up_to)}: {said}; {advice}")


def undecided(ratios: Mapping[int, float], advice: str) -> Verdict:
    """After a run that was disturbed: what it measured says nothing about speculation."""
    return Verdict(None, dict(ratios), f"none, as this run was disturbed; {advice}")


def clients_text(count: int) -> str:
    """``1 client``, ``4 clients``."""
    return f"{count} client" if count == 1 else f"{count} clients"
