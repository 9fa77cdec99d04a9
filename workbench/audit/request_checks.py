"""Each request: its client's own tokens against usage, the bus's request events, and its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from probes.events import RequestEvent, RequestRow
from workbench.audit.difference import Findings, Left
from workbench.audit.evidence import Evidence, Served, ending_of

CLIENT, USAGE, EVENTS, ROWS = "client", "usage", "bus request events", "bus rows"


class RequestChecks:
    """Runs over all requests of the evidence."""

    def __init__(self, evidence: Evidence, findings: Findings) -> None:
        self._findings = findings
        self._served = evidence.served
        self._events = evidence.requests()
        self._rows: defaultdict[str, list[RequestRow]] = defaultdict(list)
        for event in evidence.rows():
            for row in event.rows:
                self._rows[row.request_id].append(row)

    def run(self) -> None:
        """Compare everything."""
        known: set[str] = set()
        for served in self._served:
            if not served.answer.id:
                continue
            ids = [served.engine_id(choice) for choice in range(served.planned.choices)]
            known.update(ids)
            self._one(served, [self._events.get(request_id, []) for request_id in ids])
        self._unanswered(known)
        for request_id, events in self._events.items():
            self._life(request_id, events)
            self._row_sums(request_id, events)

    def _one(self, served: Served, events: Sequence[Sequence[RequestEvent]]) -> None:
        """One HTTP request and its engine requests."""
        findings, answer, name = self._findings, served.answer, served.name
        if answer.error is not None:
            findings.same(name, "how it ended", (CLIENT, str(answer.error)), (EVENTS, "an answer was due"))
            return
        ends = [ending_of(of_choice) for of_choice in events]
        for choice, end in enumerate(ends):
            sequence = answer.sequences.get(choice)
            delivered = len(sequence.token_ids) if sequence is not None else 0
            if end is None:
                findings.same(name, "end of it", (CLIENT, f"{delivered} tokens"), (EVENTS, "none came"))
            elif answer.left:
                self._left(name, delivered, end)
            else:
                findings.same(name, "output tokens", (CLIENT, delivered), (EVENTS, end.output_tokens))
                reason = sequence.finish_reason if sequence is not None else None
                findings.same(name, "finish reason", (CLIENT, reason), (EVENTS, end.finish_reason))
        if answer.usage is not None and not answer.left:
            self._usage(served, [end for end in ends if end is not None])

    def _usage(self, served: Served, ends: Sequence[RequestEvent]) -> None:
        usage, same, name = served.answer.usage, self._findings.same, served.name
        assert usage is not None
        delivered = sum(len(sequence.token_ids) for sequence in served.answer.sequences.values())
        same(name, "output tokens", (CLIENT, delivered), (USAGE, usage.completion_tokens))
        same(name, "output tokens", (USAGE, usage.completion_tokens), (EVENTS, sum(e.output_tokens for e in ends)))
        for end in ends[:1]:  # every choice has the same prompt
            same(name, "prompt tokens", (USAGE, usage.prompt_tokens), (EVENTS, end.prompt_tokens))
        extra = usage.specwb
        if extra is None:
            return
        verifies, correct = sum(e.verify_steps for e in ends), sum(e.correct_drafts for e in ends)
        same(name, "verify steps", (USAGE, extra.get("verify_steps")), (EVENTS, verifies))
        same(name, "correct drafts", (USAGE, extra.get("correct_drafts")), (EVENTS, correct))
        length = round(1 + correct / verifies, 4) if verifies else None
        same(name, "accept length", (USAGE, extra.get("accept_length")), (EVENTS, length))

    def _left(self, name: str, delivered: int, end: RequestEvent) -> None:
        """Its client hung up: what was emitted and not delivered was on its way then."""
        if delivered > end.output_tokens:
            self._findings.same(name, "tokens delivered", (CLIENT, delivered), (EVENTS, end.output_tokens))
        else:
            self._findings.left.append(Left(name, delivered, end.output_tokens, end.phase == "aborted"))

    def _unanswered(self, known: set[str]) -> None:
        """Requests whose client left before it heard an id: the bus may have them under any name, and no others."""
        nameless = [served for served in self._served if not served.answer.id]
        for served in nameless:
            if served.planned.leave_after != 0:
                answer = served.answer
                said = str(answer.error) if answer.error is not None else "no id"
                self._findings.same(served.name, "answer", (CLIENT, said), (EVENTS, "an answer was due"))
        strangers = [request_id for request_id in self._events if request_id not in known]
        for request_id in strangers[len(nameless) :]:
            self._findings.same(
                f"request {request_id}", "whose it is", (CLIENT, "sent no such request"), (EVENTS, "one arrived")
            )
        if strangers[: len(nameless)]:
            self._findings.notes.append(
                f"{len(nameless)} clients left before they heard an id; the bus has {len(strangers)} requests of theirs"
            )

    def _life(self, request_id: str, events: Sequence[RequestEvent]) -> None:
        """It arrives once, has one first token if it has any, ends once, and is not aborted after its end."""
        phases = [event.phase for event in events]
        name, same = f"request {request_id}", self._findings.same
        same(name, "arrivals", (EVENTS, phases.count("arrived")), ("a request's life", 1))
        ends = phases.count("finished") + phases.count("aborted")
        same(name, "ends (finished or aborted)", (EVENTS, ends), ("a request's life", 1))
        end = ending_of(events)
        if end is not None:
            due = int(end.output_tokens > 0)
            same(name, "first tokens", (EVENTS, phases.count("first_token")), ("a request's life", due))

    def _row_sums(self, request_id: str, events: Sequence[RequestEvent]) -> None:
        """Its rows add up to its end's counts; its first token comes from the prompt's last chunk and has no row."""
        end = ending_of(events)
        if end is None:
            return
        rows, name, same = self._rows[request_id], f"request {request_id}", self._findings.same
        first = sum(event.phase == "first_token" for event in events)
        emitted = sum(row.emitted for row in rows) + first
        same(name, "output tokens", (ROWS, emitted), (EVENTS, end.output_tokens))
        verified = [row for row in rows if row.correct is not None]
        same(name, "verify steps", (ROWS, len(verified)), (EVENTS, end.verify_steps))
        same(name, "correct drafts", (ROWS, sum(r.correct or 0 for r in verified)), (EVENTS, end.correct_drafts))
        same(name, "proposed drafts", (ROWS, sum(row.width - 1 for row in verified)), (EVENTS, end.proposed))
