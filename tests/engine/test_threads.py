"""The threads of a pool: in order, a fixed number, and gone at the end."""

from __future__ import annotations

import threading

import trio

from jackin_memd.engine.stats import WINDOW, Stats
from jackin_memd.engine.threads import worker_threads
from tests.engine.driving import PATIENCE_S, in_trio


@in_trio
async def test_one_thread_does_its_jobs_in_the_order_they_came() -> None:
    done: list[int] = []
    async with worker_threads("one", 1) as workers:
        for number in range(500):
            workers.submit(lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == list(range(500))


@in_trio
async def test_as_many_jobs_run_at_once_as_there_are_threads() -> None:
    together = threading.Barrier(3)

    def meet() -> None:
        together.wait(PATIENCE_S)

    async with worker_threads("three", 3) as workers:
        for _ in range(6):
            workers.submit(meet)
    assert not together.broken


@in_trio
async def test_a_job_tells_the_loop_from_its_thread() -> None:
    told = trio.Event()
    async with worker_threads("one", 1) as workers:

        def tell() -> None:
            workers.call_soon(told.set)

        workers.submit(tell)
        await told.wait()


@in_trio
async def test_jobs_that_wait_for_a_thread_are_counted() -> None:
    begun, release = threading.Event(), threading.Event()

    def occupy() -> None:
        begun.set()
        assert release.wait(PATIENCE_S)

    async with worker_threads("one", 1) as workers:
        workers.submit(occupy)
        await trio.to_thread.run_sync(begun.wait)
        for _ in range(3):
            workers.submit(lambda: None)
        assert workers.depth == 3
        release.set()


@in_trio
async def test_leaving_does_what_was_submitted_and_ends_every_thread() -> None:
    done: list[int] = []
    with trio.CancelScope() as scope:
        async with worker_threads("leaving", 2) as workers:
            for number in range(100):
                workers.submit(lambda number=number: done.append(number))  # type: ignore[misc]
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert sorted(done) == list(range(100))
    assert not [t for t in threading.enumerate() if t.name.startswith("leaving-")]


# -- statistics ------------------------------------------------------------------


def test_without_a_write_there_is_no_latency() -> None:
    latency = Stats().latency()
    assert (latency.samples, latency.p50_ms, latency.p99_ms) == (0, None, None)


def test_percentiles_are_of_the_newest_writes_in_milliseconds() -> None:
    stats = Stats()
    for _ in range(WINDOW):
        stats.acknowledged(1000.0)
    for number in range(WINDOW):
        stats.acknowledged(number / 1000)
    latency = stats.latency()
    assert latency.samples == WINDOW
    assert latency.p50_ms == WINDOW // 2
    assert latency.p99_ms == int(WINDOW * 0.99)


def test_commits_and_rows_are_counted_apart() -> None:
    stats = Stats()
    stats.committed(3)
    stats.committed(4)
    assert (stats.commits, stats.rows) == (2, 7)
