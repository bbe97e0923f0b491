"""A fixed set of worker threads, owned by the block that opens it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from queue import SimpleQueue
from threading import Thread

import trio

Job = Callable[[], None]


class WorkerThreads:
    """Runs jobs in the order they were submitted, `size` at a time.

    A job must not raise; it hands its outcome to the loop with `call_soon`.
    """

    def __init__(self, name: str, size: int) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        self._threads = [
            Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(size)
        ]

    @property
    def depth(self) -> int:
        """Jobs that no thread has taken yet."""
        return self._jobs.qsize()

    @property
    def call_soon(self) -> Callable[..., object]:
        """Schedule a call on the event loop, from any thread."""
        return self._token.run_sync_soon

    def submit(self, job: Job) -> None:
        """From any thread."""
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _stop(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()


@asynccontextmanager
async def worker_threads(name: str, size: int) -> AsyncIterator[WorkerThreads]:
    """Leaving the block waits for the jobs that were submitted in it."""
    workers = WorkerThreads(name, size)
    workers._start()
    try:
        yield workers
    finally:
        with trio.CancelScope(shield=True):  # jobs are bounded by SQLite's busy timeout
            await trio.to_thread.run_sync(workers._stop)
