"""Messages wait in order."""

from __future__ import annotations

import asyncio

from engine.ipc import Failed, Output
from engine.server.mailbox import Mailbox


def test_order() -> None:
    async def run() -> list[tuple[int, object]]:
        mailbox = Mailbox()
        for number in range(5):
            mailbox.put(number % 2, Output(request_id="r", completion_tokens=number))
        mailbox.put(1, Failed(request_id="r", status=500, code="c", message="m"))
        return [
            (index, message.completion_tokens if isinstance(message, Output) else message.status)
            for index, message in [await mailbox.get() for _ in range(6)]
        ]

    assert asyncio.run(run()) == [(0, 0), (1, 1), (0, 2), (1, 3), (0, 4), (1, 500)]


def test_a_reader_wakes_up() -> None:
    async def run() -> int:
        mailbox = Mailbox()
        reader = asyncio.create_task(mailbox.get())
        await asyncio.sleep(0)
        mailbox.put(3, Output(request_id="r"))
        return (await asyncio.wait_for(reader, 30))[0]

    assert asyncio.run(run()) == 3
