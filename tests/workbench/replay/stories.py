"""Sessions with everything in them that a state keeps."""

from __future__ import annotations

import random
from typing import Any

from probes.events import DropEvent
from probes.subscriber import Gap, Malformed, Received, Restart
from tests.workbench import made_events as made

T0 = made.T0


def long_session(steps: int, seed: int = 0, rate: float = 10.0) -> list[tuple[float, Received]]:
    """Steps at about ``rate`` a second with idle holes, heartbeats, switches, knob changes, alerts, losses, a restart.

    Each item at the time it says, or at that of the item before it.
    """
    dice = random.Random(seed)
    told: list[tuple[float, Received]] = [(T0, made.hello())]
    boot, number, epoch, t, beats = made.BOOT, 0, 0, T0, 0
    threshold, spec = 4, "auto"
    next_beat = T0 + 1
    for index in range(1, steps + 1):
        number += 1
        t += dice.expovariate(rate) if dice.random() > 0.003 else dice.uniform(2.0, 30.0)
        while next_beat < t:
            beats += 1
            stage = "idle" if t - next_beat > 1.0 else "run"
            beat = made.heartbeat(beats, stage, dice.uniform(0.0, 4.0), t=next_beat, boot_id=boot, step=number - 1)
            told.append((next_beat, beat))
            next_beat += 1.0
        chance = dice.random()
        if chance < 0.004:
            new: dict[str, Any] = dice.choice(
                [{"threshold": dice.randrange(1, 9)}, {"spec": dice.choice(["auto", "off"])}]
            )
            old = {name: threshold if name == "threshold" else spec for name in new}
            threshold, spec = new.get("threshold", threshold), new.get("spec", spec)
            epoch += 1
            told.append((t, made.knob_change(number, old, new, epoch, t=t, boot_id=boot)))
        elif chance < 0.006:
            told.append((t, made.alert(f"alert {index}", t=t, boot_id=boot, step=number)))
        elif chance < 0.008:
            told.append((t, Gap("step", number, number + 2, recovered=dice.random() < 0.3)))
        elif chance < 0.009:
            told.append((t, Malformed("payload of 3 bytes is not a step event", 3, "step")))
        elif chance < 0.010:
            told.append((t, DropEvent(boot_id=boot, t=t, topic="step", first_seq=number, count=2, total=2 * index)))
        if index == steps // 2:
            new_boot = "c0ffee00"
            told.append((t, Restart(boot, new_boot)))
            boot, number, epoch = new_boot, 1, 0
            told.append((t, made.hello(boot_id=boot, t=t, knobs=made.knobs(threshold=threshold, spec=spec))))
        is_off = spec == "off"
        requests = dice.randrange(1, 9)
        changes = {"spec": False, "reason": "spec_off"} if is_off else {}
        event = made.step(number, requests, t=t, boot_id=boot, knob_epoch=epoch, **changes)
        if dice.random() < 0.05:
            event = made.prefill(number, t=t, boot_id=boot, knob_epoch=epoch)
        told.append((t, event))
    return told
