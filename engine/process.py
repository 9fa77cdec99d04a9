"""The engine process: ``python -m engine.process --config FILE --endpoints JSON``, started by the server.

One loop: take messages and knob changes between steps, run a step, send what it gave. The bus lives in its own thread.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import msgspec
import zmq

from engine import ipc
from engine.admission import RequestRefusedError
from engine.assembly import Assembly, assemble
from engine.boot import Boot
from engine.config import EngineConfig
from engine.core import EngineCore
from engine.identity import hello_of
from engine.self_check import SelfCheck, self_check
from probes.bus import Bus
from probes.endpoints import EndpointError
from probes.events import HelloEvent

log = logging.getLogger("engine")

IDLE_POLL_MS = 1000
EXIT_FATAL = 1


class EngineProcess:
    """Connects a core to the server's pipes and to the bus."""

    def __init__(self, config: EngineConfig, boot: Boot) -> None:
        self._boot = boot
        self._config = config
        self._stop = False
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._inbox = self._context.socket(zmq.PULL)
        self._outbox = self._context.socket(zmq.PUSH)
        for socket, endpoint in ((self._inbox, boot.to_engine), (self._outbox, boot.from_engine)):
            socket.set(zmq.LINGER, 500)
            socket.set_hwm(0)  # bounded by the requests in flight, which the server limits
            socket.connect(endpoint)
        self._bus = Bus(boot.bus, boot_id=boot.boot_id, name=boot.name, hello=self._hello)
        self._assembly: Assembly | None = None
        self._check: SelfCheck | None = None

    def run(self) -> int:
        """Load, serve until told to stop; the exit code."""
        try:
            try:
                assembly = self._load()
                self._bus.start()
            except (EndpointError, ValueError) as error:  # files or options: a person must change something
                return self._give_up(str(error), retry=False)
            self._serve(assembly.core)
            return 0
        except Exception as error:  # an invariant broke, steps keep failing, or a bug: a fresh process may do better
            log.exception("the engine gives up")
            return self._give_up(str(error) or type(error).__name__, retry=True)
        finally:
            self._close()

    def stop(self) -> None:
        """Leave after the step that runs."""
        self._stop = True

    def _load(self) -> Assembly:
        assembly = assemble(self._config, sink=self._bus, boot_id=self._boot.boot_id, progress=self._say)
        self._say("warming up")
        self._check = self_check(assembly)
        assembly.warnings.extend(self._check.warnings)
        self._assembly = assembly
        gc.collect()
        gc.freeze()  # models and libraries stay: searching them for garbage would hold a step up for 90 ms
        return assembly

    def _serve(self, core: EngineCore) -> None:
        assembly = self._assembly
        assert assembly is not None
        for warning in assembly.warnings:
            core.reporter.alert("start_warning", "warning", warning, 0)
        self._send(
            ipc.Ready(
                boot_id=self._boot.boot_id,
                max_model_len=core.max_model_len,
                vocab_size=core.shape.vocab_size,
                model_name=assembly.target.name,
                warnings=assembly.warnings,
            )
        )
        poller = zmq.Poller()
        poller.register(self._inbox, zmq.POLLIN)
        poller.register(self._bus.control_fd, zmq.POLLIN)
        core.idle()
        while not self._stop:
            self._take_messages(core)
            self._take_control(core)
            if core.has_work:
                for output in core.step():
                    self._send(output)
                if not core.has_work:
                    core.idle()
            else:
                core.take_back_due()  # a step does so by itself
                poller.poll(self._idle_ms(core))
        for request_id in core.abort_all():
            self._send(
                ipc.Failed(request_id=request_id, status=503, code="shutting_down", message="the engine is stopping")
            )

    def _take_messages(self, core: EngineCore) -> None:
        while True:
            try:
                message = ipc.decode_to_engine(self._inbox.recv(zmq.NOBLOCK))
            except zmq.Again:
                return
            match message:
                case ipc.Submit():
                    try:
                        core.add(message.request_id, message.prompt_ids, message.sampling)
                    except RequestRefusedError as error:
                        self._send(
                            ipc.Failed(
                                request_id=message.request_id,
                                status=error.status,
                                code=error.code,
                                message=str(error),
                                field=error.field,
                            )
                        )
                case ipc.Abort():
                    core.abort(message.request_id)
                case ipc.Shutdown():
                    self.stop()

    def _take_control(self, core: EngineCore) -> None:
        for pending in self._bus.take_control():
            pending.reply(core.set_knobs(pending.request))

    def _idle_ms(self, core: EngineCore) -> int:
        """How long an idle loop may sleep unless something comes: at most until a knob goes back."""
        due_in = core.knobs.next_revert_in
        return IDLE_POLL_MS if due_in is None else min(IDLE_POLL_MS, int(due_in * 1000) + 1)

    def _hello(self) -> HelloEvent:
        assert self._assembly is not None
        return hello_of(self._assembly, self._boot.name, self._check, self._bus.t())

    def _say(self, message: str) -> None:
        self._send(ipc.Loading(boot_id=self._boot.boot_id, message=message))

    def _send(self, message: ipc.FromEngine) -> None:
        self._outbox.send(ipc.encode(message), zmq.NOBLOCK)

    def _give_up(self, message: str, *, retry: bool) -> int:
        self._send(ipc.Fatal(boot_id=self._boot.boot_id, message=message, retry=retry))
        return EXIT_FATAL

    def _close(self) -> None:
        self._bus.close()
        self._inbox.close()
        self._outbox.close()
        self._context.term()


def _leave_with_parent() -> None:
    """The server holds the other end of our stdin; end-of-file means it is gone, however it went."""
    while os.read(sys.stdin.fileno(), 4096):  # not the buffered file: its lock would outlive the interpreter
        pass
    os._exit(EXIT_FATAL)


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m engine.process", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="file with the engine's options as JSON")
    parser.add_argument("--endpoints", required=True, help="who and where, as JSON (engine.boot.Boot)")
    options = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    config = msgspec.json.decode(options.config.read_bytes(), type=EngineConfig)
    process = EngineProcess(config, msgspec.json.decode(options.endpoints, type=Boot))
    threading.Thread(target=_leave_with_parent, name="parent-watch", daemon=True).start()

    def on_signal(number: int, frame: FrameType | None) -> None:
        process.stop()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return process.run()


if __name__ == "__main__":
    sys.exit(main())
