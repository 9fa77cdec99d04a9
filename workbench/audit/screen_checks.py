"""What the screen shows against the bus: every row of its table, its sums by knob epoch, and its status line."""

from __future__ import annotations

from collections import defaultdict

from probes.events import StepEvent
from workbench.audit.difference import Findings
from workbench.audit.evidence import Evidence, of_type
from workbench.tui.status_lines import accept_text, numbers_line
from workbench.tui.step_row import COLUMNS, step_cells
from workbench.tui.windows import AcceptWindow

SCREEN, BUS = "screen", "bus steps"
WIDTH = 200
"""Columns that the rows are drawn for: none of a figure's cells is cut."""
TOLD = ("step", "reqs", "emit", "acc")


def check_screen(evidence: Evidence, findings: Findings) -> None:
    """Compare everything that a number on the screen says of this audit's steps."""
    state, same = evidence.screen, findings.same
    same("the screen", "events lost", (SCREEN, state.lost_total), ("none expected", 0))
    steps = {step.step: step for step in evidence.steps()}
    entries = [
        entry for entry in of_type(state.timeline, StepEvent) if evidence.first_step < entry.step <= evidence.last_step
    ]
    same("all steps", "rows of the table", (SCREEN, len(entries)), (BUS, len(evidence.steps())))
    shown = {entry.step: entry for entry in entries}
    for number in sorted(steps.keys() | shown.keys()):
        step, entry = steps.get(number), shown.get(number)
        if step is None or entry is None:
            rows = int(entry is not None), int(step is not None)
            same(f"step {number}", "rows", (SCREEN, rows[0]), (BUS, rows[1]))
            continue
        _row(step, entry, findings)
    emitted = sum(int(_cells(entry)["emit"]) for entry in entries)
    same("all steps", "tokens in the emit column", (SCREEN, emitted), (BUS, sum(s.emitted for s in evidence.steps())))
    _epochs(evidence, findings)
    _status(evidence, findings)


def _cells(entry: StepEvent) -> dict[str, str]:
    """Column -> what stands in its cell."""
    cells = step_cells(entry, WIDTH)
    return {column.title: cell.strip() for column, cell in zip(COLUMNS, cells, strict=True)}


def _row(step: StepEvent, entry: StepEvent, findings: Findings) -> None:
    cells = _cells(entry)
    accept = "·" if step.accept_length is None else f"{step.accept_length:.2f}"
    expected = (str(step.step), str(step.requests), str(step.emitted), accept)
    for title, value in zip(TOLD, expected, strict=True):
        findings.same(f"step {step.step}", f"column {title}", (SCREEN, cells[title]), (BUS, value))


def _epochs(evidence: Evidence, findings: Findings) -> None:
    """Sums by knob epoch, as the acceptance view has them; of epochs that lie in this audit as a whole."""
    sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0])
    for step in evidence.steps():
        for index, value in enumerate((step.emitted, step.verified, step.correct_drafts)):
            sums[step.knob_epoch][index] += value
    for epoch in evidence.screen.epochs.epochs:
        if epoch.first_step is None or epoch.first_step <= evidence.first_step or epoch.number not in sums:
            continue
        found = (epoch.emitted, epoch.verifies, epoch.correct)
        for what, one, other in zip(("emitted", "verified", "correct"), found, sums[epoch.number], strict=True):
            findings.same(f"knob epoch {epoch.number}", what, (SCREEN, one), (BUS, other))


def _status(evidence: Evidence, findings: Findings) -> None:
    """The accept length of the status line: over the last seconds before the newest verify, a ratio of sums."""
    state, now = evidence.screen, evidence.screen_now
    acceptance = state.acceptance(now)
    line = "".join(text for text, _ in numbers_line(state, now, WIDTH))
    is_shown = f"accept {accept_text(acceptance)}" in line
    findings.same("status line", "it has the accept length", (SCREEN, is_shown), ("what it should say", True))
    verifying = [step for step in evidence.steps() if step.verified]
    if not verifying or verifying[-1].knob_epoch == evidence.first_epoch:
        return  # nothing verified, or the window may reach back to steps before this audit
    newest = verifying[-1]
    window = [
        step
        for step in verifying
        if step.knob_epoch == newest.knob_epoch and step.t > newest.t - AcceptWindow().seconds
    ]
    expected = 1 + sum(step.correct_drafts for step in window) / sum(step.verified for step in window)
    last = "n/a" if acceptance.last is None else f"{acceptance.last:.2f}"
    findings.same("status line", "newest accept length", (SCREEN, last), (BUS, f"{expected:.2f}"))
