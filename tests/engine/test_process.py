"""The engine process in this process: what it tells its server when it cannot go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import zmq

from engine import ipc
from engine.assembly import Assembly, assemble
from engine.boot import Boot
from engine.config import EngineConfig
from engine.process import EXIT_FATAL, EngineProcess
from engine.request import Request
from engine.sampling_params import SamplingParams
from probes.endpoints import Endpoints

DEADLINE_MS = 30_000


def test_a_broken_invariant_ends_the_process_with_a_reason_and_asks_for_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leak in the accounting that --debug-checks finds: the server learns what broke, not just that one died."""

    def leaking(config: EngineConfig, **options: Any) -> Assembly:
        assembly = assemble(config, **options)
        core = assembly.core
        add = core.add

        def leak_and_add(request_id: str, *rest: Any) -> Request:
            if request_id == "r":  # not the self-check's
                core.ledger.admit("nobody's", 10)
            return add(request_id, *rest)

        monkeypatch.setattr(core, "add", leak_and_add)
        return assembly

    monkeypatch.setattr("engine.process.assemble", leaking)
    boot = Boot(
        name="test",
        boot_id="b1",
        to_engine=f"ipc://{tmp_path}/i",
        from_engine=f"ipc://{tmp_path}/o",
        bus=Endpoints.in_dir(tmp_path),
    )
    with zmq.Context() as context, context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.bind(boot.to_engine)
        pull.bind(boot.from_engine)
        config = EngineConfig(model="tiny-random", dtype="float32", kv_tokens=4096, debug_checks=True)
        submit = ipc.Submit(request_id="r", prompt_ids=[1, 2, 3], sampling=SamplingParams(max_tokens=4))
        process = EngineProcess(config, boot)
        push.send(ipc.encode(submit))
        assert process.run() == EXIT_FATAL
        messages: list[ipc.FromEngine] = []
        while not (messages and isinstance(messages[-1], ipc.Fatal)):
            assert pull.poll(DEADLINE_MS), f"no Fatal came, only {messages}"
            messages.append(ipc.decode_from_engine(pull.recv()))
    fatal = messages[-1]
    assert isinstance(fatal, ipc.Fatal)
    assert fatal.retry
    assert "nobody's" in fatal.message
    assert any(isinstance(message, ipc.Ready) for message in messages)
