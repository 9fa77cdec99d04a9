"""An engine process that says what each prompt tells it to: faults, odd timings and exact outputs, over the real pipes.

A prompt is a JSON list of actions, done in order:

- ``{"encode": "…", "finish": "stop", "verify_steps": 1, "correct": 2}``: an Output with the tokens of this text
  (``"times": 9``: as often);
- ``{"fail": 500, "code": "…", "message": "…", "field": "…"}``: a Failed;
- ``{"await_abort": true}``: wait until the request is aborted;
- ``{"exit": 3}``: the process dies, having printed a last line to stderr;
- ``{"report": true}``: an Output whose text is JSON: what this process has received so far.

``--start`` says how the start goes: ``ready``, ``die`` (exit code 7 before ready), ``fatal``, ``broken``
(the same, but a restart may help), ``hang`` (never ready).
``--deaf`` ignores Shutdown.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections import Counter, deque
from typing import Any

import msgspec
import zmq

from engine import ipc
from engine.boot import Boot
from engine.models.text_assets import load_text
from probes.events import HeartbeatEvent
from probes.wire import encode_event, pack

MODEL = "tiny-random"


class ScriptedEngine:
    """One boot."""

    def __init__(self, boot: Boot, max_model_len: int, deaf: bool) -> None:
        self.boot = boot
        self.max_model_len = max_model_len
        self.deaf = deaf
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context.instance()
        self.pull = context.socket(zmq.PULL)
        self.pull.connect(boot.to_engine)
        self.push = context.socket(zmq.PUSH)
        self.push.connect(boot.from_engine)
        self.events = context.socket(zmq.XPUB)
        self.events.bind(boot.bus.events)
        self.tokenizer = load_text(MODEL).tokenizer
        self.received: Counter[str] = Counter()
        self.aborted: list[str] = []
        self.scripts: dict[str, deque[dict[str, Any]]] = {}
        self.counts: Counter[str] = Counter()
        self.submits: dict[str, ipc.Submit] = {}
        self.waiting = 0  # requests that wait for their abort

    def send(self, message: ipc.FromEngine) -> None:
        self.push.send(ipc.encode(message))

    def run(self) -> None:
        threading.Thread(target=self.beat, daemon=True).start()
        ready = ipc.Ready(
            boot_id=self.boot.boot_id,
            max_model_len=self.max_model_len,
            vocab_size=self.tokenizer.vocab_size,
            model_name="scripted",
            warnings=["this engine follows a script"],
        )
        self.send(ready)
        while True:
            message = ipc.decode_to_engine(self.pull.recv())
            self.received[type(message).__name__] += 1
            match message:
                case ipc.Submit():
                    self.submits[message.request_id] = message
                    self.scripts[message.request_id] = deque(json.loads(self.tokenizer.decode(message.prompt_ids)))
                    self.advance(message.request_id)
                case ipc.Abort():
                    self.aborted.append(message.request_id)
                    self.waiting -= 1
                case ipc.Shutdown() if not self.deaf:
                    return

    def advance(self, request_id: str) -> None:
        script = self.scripts[request_id]
        while script:
            action = script.popleft()
            if "await_abort" in action:
                self.waiting += 1
                return
            if "exit" in action:
                print("scripted engine: last words", file=sys.stderr, flush=True)
                os._exit(action["exit"])
            if "fail" in action:
                self.send(
                    ipc.Failed(
                        request_id=request_id,
                        status=action["fail"],
                        code=action.get("code", "scripted"),
                        message=action.get("message", "scripted failure"),
                        field=action.get("field"),
                    )
                )
                return
            for _ in range(action.get("times", 1)):
                self.output(request_id, action)

    def output(self, request_id: str, action: dict[str, Any]) -> None:
        submit = self.submits[request_id]
        ids = self.tokenizer.encode(action.get("encode", ""))
        text = None
        if "report" in action:
            text = json.dumps(
                {
                    "boot_id": self.boot.boot_id,
                    "pid": os.getpid(),
                    "received": self.received,
                    "aborted": self.aborted,
                    "waiting": self.waiting,
                    "sampling": msgspec.to_builtins(submit.sampling),
                }
            )
        self.counts[request_id] += len(ids)
        scores = None
        if submit.sampling.logprobs is not None:
            top = list(range(10, 10 + submit.sampling.logprobs))
            scores = [
                ipc.TokenLogprobs(chosen=-0.5, top_ids=top, top=[-0.5 - rank for rank in range(len(top))]) for _ in ids
            ]
        self.send(
            ipc.Output(
                request_id=request_id,
                token_ids=ids,
                logprobs=scores,
                text=text,
                finish_reason=action.get("finish", "stop" if "report" in action else None),
                prompt_tokens=len(submit.prompt_ids),
                completion_tokens=self.counts[request_id],
                verify_steps=action.get("verify_steps", 0),
                correct_drafts=action.get("correct", 0),
            )
        )

    def beat(self) -> None:
        """The publisher's part: a heartbeat, a few times a second."""
        seq = 0
        while True:
            seq += 1
            event = HeartbeatEvent(boot_id=self.boot.boot_id, t=time.time(), stage="idle", stage_s=0.0, step=0)
            self.events.send_multipart(pack("heartbeat", seq, encode_event(event, seq)))
            time.sleep(0.2)


def leave_with_parent() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", required=True)
    parser.add_argument("--endpoints", required=True)
    parser.add_argument("--start", default="ready")
    parser.add_argument("--deaf", action="store_true")
    parser.add_argument("--max-model-len", type=int, default=2048)
    options = parser.parse_args()
    boot = msgspec.json.decode(options.endpoints, type=Boot)
    threading.Thread(target=leave_with_parent, daemon=True).start()
    if options.start == "die":
        print("scripted engine: cannot find its feet", file=sys.stderr, flush=True)
        sys.exit(7)
    if options.start == "hang":
        with zmq.Context() as context, context.socket(zmq.PUSH) as push:
            push.connect(boot.from_engine)
            push.send(ipc.encode(ipc.Loading(boot_id=boot.boot_id, message="loading the slow part")))
            threading.Event().wait()
    if options.start in ("fatal", "broken"):
        retry = options.start == "broken"
        message = "slots leaked" if retry else "the head does not fit"
        with zmq.Context() as context, context.socket(zmq.PUSH) as push:
            push.connect(boot.from_engine)
            push.send(ipc.encode(ipc.Fatal(boot_id=boot.boot_id, message=message, retry=retry)))
        sys.exit(1)
    ScriptedEngine(boot, options.max_model_len, options.deaf).run()


if __name__ == "__main__":
    main()
