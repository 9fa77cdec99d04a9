"""``specwb audit`` on an engine whose steps are launched before the ones before them have landed, and whose acceptance
is prescribed: its figures are honest all the same, and called what they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from probes.discovery import find_record
from tests.engine.server.server_under_test import ServerUnderTest
from tests.workbench.served import served
from workbench.audit.audit_text import audit_lines, report
from workbench.audit.session import AuditSession


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerUnderTest]:
    yield from served(tmp_path, scheduler="overlap", simulate_accept=2.6)


def test_it_is_clean_although_steps_are_planned_past_the_end_of_requests(
    server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(server.runtime))
    audited = asyncio.run(AuditSession(find_record(server.name), 40, 1, None, lambda text: None).run())
    assert [difference.text for difference in audited.findings.differences] == []
    steps = audited.evidence.steps()
    assert {step.scheduler for step in steps} == {"overlap"}
    assert any(step.overrun for step in steps)
    assert all(step.simulated for step in steps)
    assert "SIMULATED: accept length set to 2.6" in audit_lines(audited)
    assert report(audited, "t")["simulated"] is True
