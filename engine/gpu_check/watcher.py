"""A subscriber in a process of its own: ``python -m engine.gpu_check.watcher DIRECTORY``.

Follows every topic of the bus whose sockets lie in DIRECTORY. Says ``ready`` once it has joined; when its standard
input ends it prints what it saw, as one JSON object: topic -> events.
"""

from __future__ import annotations

import json
import select
import sys
from collections import Counter
from pathlib import Path

from probes.endpoints import Endpoints
from probes.events import TOPICS, topic_of
from probes.subscriber import Gap, Malformed, Restart, Subscriber


def main(directory: str) -> None:
    """Entry point."""
    seen: Counter[str] = Counter()
    joined = False
    with Subscriber(Endpoints.in_dir(Path(directory)), topics=list(TOPICS), who="gpu-check", timeout=30.0) as bus:
        while not select.select([sys.stdin], [], [], 0)[0]:
            for item in bus.poll(0.05):
                if isinstance(item, Gap):
                    seen["lost"] += 0 if item.recovered else item.count
                elif isinstance(item, Restart | Malformed):
                    seen[type(item).__name__.lower()] += 1
                else:
                    seen[topic_of(item)] += 1
            if bus.is_joined and not joined:
                joined = True
                print("ready", flush=True)
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
