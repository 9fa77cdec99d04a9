"""A wish to see a step, from any view: the screen answers it with the steps view."""

from __future__ import annotations

from textual.message import Message


class StepWanted(Message):
    """Show the steps view with that step selected; an empty boot is the newest one."""

    def __init__(self, step: int, boot_id: str = "") -> None:
        super().__init__()
        self.step, self.boot_id = step, boot_id
