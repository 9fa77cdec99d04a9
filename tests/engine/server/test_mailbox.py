"""Messages wait in order, and a slow reader costs memory by tokens, not by steps."""

from __future__ import annotations

import asyncio

from engine.ipc import Failed, FinishReason, Output, TokenLogprobs
from engine.server.mailbox import PENDING_LIMIT, Mailbox


def drain(mailbox: Mailbox) -> list[tuple[int, Output | Failed]]:
    async def run() -> list[tuple[int, Output | Failed]]:
        return [await mailbox.get() for _ in range(len(mailbox))]

    return asyncio.run(run())


def test_order() -> None:
    mailbox = Mailbox()
    for number in range(5):
        mailbox.put(number % 2, Output(request_id="r", token_ids=[number]))
    assert [(index, message.token_ids) for index, message in drain(mailbox) if isinstance(message, Output)] == [
        (0, [0]),
        (1, [1]),
        (0, [2]),
        (1, [3]),
        (0, [4]),
    ]


def test_a_reader_wakes_up() -> None:
    async def run() -> int:
        mailbox = Mailbox()
        reader = asyncio.create_task(mailbox.get())
        await asyncio.sleep(0)
        mailbox.put(3, Output(request_id="r"))
        return (await asyncio.wait_for(reader, 30))[0]

    assert asyncio.run(run()) == 3


def test_a_full_mailbox_joins_outputs_of_one_sequence() -> None:
    mailbox = Mailbox()
    steps = PENDING_LIMIT * 10
    for number in range(steps):
        for index in (0, 1):
            end: FinishReason | None = "stop" if number == steps - 1 else None
            mailbox.put(
                index,
                Output(
                    request_id="r",
                    token_ids=[number],
                    text=chr(97 + number % 26),
                    logprobs=[TokenLogprobs(chosen=-float(number))],
                    completion_tokens=number + 1,
                    finish_reason=end,
                ),
            )
    mailbox.put(1, Failed(request_id="r", status=500, code="c", message="m"))
    assert len(mailbox) == PENDING_LIMIT + 1
    messages = drain(mailbox)
    assert isinstance(messages[-1][1], Failed)
    for index in (0, 1):
        mine = [message for owner, message in messages if owner == index and isinstance(message, Output)]
        assert [token for message in mine for token in message.token_ids] == list(range(steps))
        assert "".join(message.text or "" for message in mine) == "".join(chr(97 + n % 26) for n in range(steps))
        assert [score.chosen for message in mine for score in message.logprobs or []] == [
            -float(n) for n in range(steps)
        ]
        assert mine[-1].finish_reason == "stop"
        assert mine[-1].completion_tokens == steps
