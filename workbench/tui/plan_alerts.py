"""The steps of which the engine found two counts that differ, in its own words, by step. Pure, bounded."""

from __future__ import annotations

from probes.events import AlertEvent, StepEvent

KEPT = 500


class PlanAlerts:
    """The newest ``plan_mismatch`` alert of each step. The step's own event, if it came to one, has only the counts of
    the plan that it ran by in the end."""

    def __init__(self) -> None:
        self._alerts: dict[tuple[str, int], AlertEvent] = {}

    def take(self, alert: AlertEvent) -> None:
        """Keep an alert, if it is one."""
        if alert.code != "plan_mismatch":
            return
        self._alerts[alert.boot_id, alert.step] = alert
        if len(self._alerts) > KEPT:
            del self._alerts[next(iter(self._alerts))]

    def of(self, step: StepEvent) -> AlertEvent | None:
        """What was found of that step."""
        return self._alerts.get((step.boot_id, step.step))


def alert_words(alert: AlertEvent, requests: int = 0) -> str:
    """Both numbers and who made each; what they are for each of ``requests``, where they divide."""
    data = alert.data
    expected, found = data.get("expected"), data.get("found")
    if not isinstance(expected, int) or not isinstance(found, int):
        return alert.message
    each = ""
    if requests and expected % requests == 0 and found % requests == 0:
        each = f": {expected // requests} against {found // requests} a request, for {requests} requests"
    return (
        f"{data.get('quantity', 'a count')}: {expected} expected by {data.get('expected_by', '?')}, "
        f"{found} found from {data.get('found_by', '?')}{each}"
    )
