"""The sweep: output tokens/s by clients, for four ways of serving; ratios by runs that alternate."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from engine.gpu_check.engines import column_knobs, eagle, plain, shape_knobs, told
from engine.gpu_check.served_run import Figures, Side, random_prompts
from engine.gpu_check.session import Session
from engine.gpu_check.sizes import ACCEPT, CHAIN, DRAFT_SHAPES, THRESHOLD
from probes.ratio import interleaved

FEW_CLIENTS = 16
"""Up to here a run takes less than a second, so one that is disturbed is far off, and more of them are taken."""


def run(session: Session) -> None:
    """Cells ``sweep/CLIENTS/off over plain``, ``…/threshold over chosen`` and, above the threshold, ``…/eagle3``; and
    ``sweep/engines``, what they are measured on."""
    session.cell("sweep/engines", partial(told, session), 60.0)
    for clients in session.sizes.clients:
        expect = expected_s(clients, 2 * pairs_at(session, clients) + 2)
        session.cell(f"sweep/{clients}/off over plain", partial(_off_over_plain, session, clients), expect)
        if clients > THRESHOLD:
            session.cell(f"sweep/{clients}/eagle3", partial(_eagle3, session, clients), expect / 2)
    for clients in session.sizes.clients:
        expect = expected_s(clients, 2 * pairs_at(session, clients) + 2)
        session.cell(f"sweep/{clients}/threshold over chosen", partial(_threshold, session, clients), expect)


def run_shapes(session: Session) -> None:
    """Cells ``shapes/SHAPE/CLIENTS``: trees and chains, always on."""
    for name in DRAFT_SHAPES:
        for clients in session.sizes.shape_clients:
            if name == CHAIN and clients in session.sizes.clients:
                continue  # the sweep has it
            expect = expected_s(clients, session.sizes.runs + 1)
            session.cell(f"shapes/{name}/{clients}", partial(_shape, session, name, clients), expect)


def expected_s(clients: int, runs: int) -> float:
    """Seconds that a cell of ``runs`` runs may take: generous, so that a budget is not overrun."""
    return runs * (0.8 + clients / 80)


def pairs_at(session: Session, clients: int) -> int:
    """Pairs of a ratio at a load."""
    return session.sizes.pairs * (2 if clients <= FEW_CLIENTS else 1)


def side(session: Session, column: str, clients: int, knobs: dict[str, str | int] | None = None) -> Side:
    """A column of the sweep at a load."""
    llm, sink = plain(session) if column == "plain" else eagle(session)
    prompts = random_prompts(clients, session.sizes.prompt, llm.core.shape.vocab_size)
    chosen = {} if column == "plain" else knobs or column_knobs(column)
    return Side(llm, sink, chosen, prompts, session.sizes.output)


def compare(first: Side, second: Side, pairs: int) -> dict[str, Any]:
    """Both sides' columns, and the ratio of their rates by pairs of runs."""
    first.warm_up()
    second.warm_up()
    ratio = interleaved(first.rate, second.rate, pairs)
    return {"ratio": asdict(ratio), "first": first.column(), "second": second.column()}


def _off_over_plain(session: Session, clients: int) -> dict[str, Any]:
    """Both engines are there the whole time: what one of them holds of the device, the other does without too."""
    return compare(side(session, "off", clients), side(session, "plain", clients), pairs_at(session, clients))


def _threshold(session: Session, clients: int) -> dict[str, Any]:
    chosen = "eagle3" if clients <= THRESHOLD else "off"
    found = compare(side(session, "dynamic", clients), side(session, chosen, clients), pairs_at(session, clients))
    return {"chosen": chosen, **found}


def _eagle3(session: Session, clients: int) -> Figures:
    return _rate_of(side(session, "eagle3", clients), session.sizes.runs)


def _shape(session: Session, name: str, clients: int) -> Figures:
    knobs: dict[str, str | int] = {"spec": "on", **shape_knobs(name)}
    found = _rate_of(side(session, "eagle3", clients, knobs), session.sizes.runs)
    return {"asked_accept": min(ACCEPT, DRAFT_SHAPES[name][0] + 1), **found}


def _rate_of(measured: Side, runs: int) -> Figures:
    measured.warm_up()
    for _ in range(runs):
        measured.rate()
    return measured.column()
