"""Each step: its own sums, its rows, the requests that began and ended in it, and the knobs that it ran under."""

from __future__ import annotations

from collections import Counter

from probes.events import DropEvent, RowsEvent, StepEvent
from probes.subscriber import Gap, Malformed, Restart
from workbench.audit.difference import Findings
from workbench.audit.evidence import Evidence, ending_of, of_type

STEPS, ROWS, EVENTS, KNOBS, RULE = "bus steps", "bus rows", "bus request events", "bus knob events", "its own sum"


class StepChecks:
    """Runs over all steps of the evidence."""

    def __init__(self, evidence: Evidence, findings: Findings) -> None:
        self._evidence = evidence
        self._same = findings.same
        self._steps = evidence.steps()
        self._rows = {rows.step: rows for rows in evidence.rows()}
        requests = [event for events in evidence.requests().values() for event in events]
        self._first_tokens = Counter(event.step for event in requests if event.phase == "first_token")
        self._finished = Counter(event.step for event in requests if event.phase == "finished")

    def run(self) -> None:
        """Compare everything."""
        self._losses()
        self._numbers()
        for step in self._steps:
            self._own_sums(step)
            self._against_rows(step, self._rows.get(step.step))
            name = f"step {step.step}"
            self._same(name, "requests that finished", (STEPS, step.finished), (EVENTS, self._finished[step.step]))
        self._totals()
        self._knobs()
        if self._steps:
            for pool, use in self._steps[-1].kv.items():
                self._same("the end", f"{pool} KV slots in use", (STEPS, use.used), ("nothing running", 0))

    def _losses(self) -> None:
        bus = self._evidence.bus
        for gap in of_type(bus, Gap):
            if not gap.recovered:
                self._same("the bus", f"{gap.topic} events lost", ("bus", gap.count), ("none expected", 0))
        for drop in of_type(bus, DropEvent):
            self._same("the engine", f"{drop.topic} events dropped", ("bus", drop.count), ("none expected", 0))
        for bad in of_type(bus, Malformed):
            self._same("the bus", "unreadable message", ("bus", bad.reason), ("none expected", 0))
        for restart in of_type(bus, Restart):
            self._same("the engine", "boot", ("at first", restart.old_boot), ("later", restart.new_boot))

    def _numbers(self) -> None:
        """Every step once, none left out."""
        evidence = self._evidence
        seen = Counter(step.step for step in self._steps)
        for number in range(evidence.first_step + 1, evidence.last_step + 1):
            self._same(f"step {number}", "step events", (STEPS, seen[number]), ("one a step", 1))

    def _own_sums(self, step: StepEvent) -> None:
        name, same = f"step {step.step}", self._same
        same(name, "slots reserved", (STEPS, step.slots_reserved), ("slots expected", step.slots_expected))
        same(name, "slots written", (STEPS, step.slots_written), ("slots reserved", step.slots_reserved))
        planned = sum(int(width) * count for width, count in step.widths.items()) + step.prefill_tokens
        same(name, "slots expected", (STEPS, step.slots_expected), (RULE, planned))
        same(name, "decode requests", (STEPS, step.requests), (RULE, sum(step.widths.values())))
        same(name, "correct drafts", (STEPS, step.correct_drafts), (RULE, sum(step.correct_by_position)))
        length = 1 + step.correct_drafts / step.verified if step.verified else None
        same(name, "accept length", (STEPS, step.accept_length), (RULE, length))
        # A plain row gives one token, a verified one its correct drafts and the bonus, a finished prompt its first; the
        # row of a request that had ended while the step flew gives nothing.
        made = self._landed(step) + step.correct_drafts + self._first_tokens[step.step]
        same(name, "tokens emitted and discarded", (STEPS, step.emitted + step.discarded), (RULE, made))

    def _landed(self, step: StepEvent) -> int:
        """Decode requests that were still there when the step landed."""
        least = step.requests - step.overrun
        if not step.overrun or not step.prefill_requests:
            return least
        # Of decodes or of prompts: the rows know, which are of decodes alone.
        rows = self._rows.get(step.step)
        return min(max(least, len(rows.rows) if rows is not None else 0), step.requests)

    def _against_rows(self, step: StepEvent, event: RowsEvent | None) -> None:
        landed = self._landed(step)
        if event is None and not landed:
            return
        name, same = f"step {step.step}", self._same
        rows = event.rows if event is not None else []
        same(name, "decode requests", (STEPS, landed), (ROWS, len(rows)))
        if event is None:
            return
        emitted = sum(row.emitted for row in rows) + self._first_tokens[step.step]
        same(name, "tokens emitted", (STEPS, step.emitted), (ROWS, emitted))
        verified = [row for row in rows if row.correct is not None]
        same(name, "verified", (STEPS, step.verified), (ROWS, len(verified)))
        same(name, "correct drafts", (STEPS, step.correct_drafts), (ROWS, sum(row.correct or 0 for row in verified)))
        same(name, "proposed", (STEPS, step.proposed), (ROWS, sum(row.width - 1 for row in verified)))

    def _totals(self) -> None:
        ends = [end for events in self._evidence.requests().values() if (end := ending_of(events)) is not None]
        steps, same = self._steps, self._same
        pairs = (
            ("tokens emitted", sum(step.emitted for step in steps), sum(end.output_tokens for end in ends)),
            ("verified", sum(step.verified for step in steps), sum(end.verify_steps for end in ends)),
            ("correct drafts", sum(step.correct_drafts for step in steps), sum(end.correct_drafts for end in ends)),
            ("proposed", sum(step.proposed for step in steps), sum(end.proposed for end in ends)),
        )
        for what, one, other in pairs:
            same("all steps", what, (STEPS, one), (EVENTS, other))

    def _knobs(self) -> None:
        """Every acknowledged switch is on the bus, and every step ran under the newest one before it."""
        same, events = self._same, self._evidence.knobs()
        told = {event.knob_epoch: event for event in events}
        for switch in self._evidence.switches:
            epoch = switch["knob_epoch"]
            event = told.get(epoch)
            where = f"knob change {epoch}"
            found = None if event is None else (event.step, event.new)
            same(where, "step and values", ("control's answer", (switch["step"], switch["new"])), (KNOBS, found))
        spec: str | None = None
        waiting = sorted(events, key=lambda event: event.knob_epoch)
        epoch_now: int | None = None
        for step in sorted(self._steps, key=lambda step: step.step):
            while waiting and waiting[0].step <= step.step:
                event = waiting.pop(0)
                epoch_now, spec = event.knob_epoch, event.new.get("spec", spec)
            name = f"step {step.step}"
            if epoch_now is not None:
                same(name, "knob epoch", (STEPS, step.knob_epoch), (KNOBS, epoch_now))
            if spec == "off":
                same(name, "verified under spec=off", (STEPS, step.verified), (KNOBS, 0))
