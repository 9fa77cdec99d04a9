"""A knob change as a command."""

from __future__ import annotations

from workbench.tui.set_command import set_command


def test_a_command_is_quoted_for_a_shell() -> None:
    assert set_command("demo", {"spec": "off", "threshold": 2}) == "specwb set demo spec=off threshold=2"
    assert set_command("a b", {"spec": "on"}, "it's $HOME") == "specwb set 'a b' spec=on --why 'it'\"'\"'s $HOME'"
