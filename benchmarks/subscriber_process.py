"""Idle subscribers: `python -m benchmarks.subscriber_process SOCKET CONTAINER COUNT`.

Each is a connection of its own that reads what comes and looks at none of it.
"""

from __future__ import annotations

import selectors
import sys
from pathlib import Path

from benchmarks.slim_client import SlimClient
from jackin_memd.wire.streams import SubscribeParams


def main() -> None:
    path, container, count = sys.argv[1:]
    waiting = selectors.DefaultSelector()
    for _ in range(int(count)):
        client = SlimClient(Path(path))
        client.hello()
        client.call("status.subscribe", SubscribeParams(instances=[container]))
        waiting.register(client.socket, selectors.EVENT_READ, client)
    print("ready", flush=True)
    waiting.register(sys.stdin, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.data is None:
                return
            key.data.socket.recv(65536)


if __name__ == "__main__":
    main()
