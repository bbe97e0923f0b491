"""The parts that both faces share, without any socket."""

from __future__ import annotations

import errno
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_mem import failures
from jackin_mem.resume import Resume, delays
from jackin_mem.session import Session, Settings, find_method, may_repeat, with_key
from jackin_memd.wire.address import IN_CONTAINER_SOCKET
from jackin_memd.wire.codec import encode
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import frame
from jackin_memd.wire.instances import InstanceGetParams, InstancePurgeParams
from jackin_memd.wire.methods import METHODS, Effect
from jackin_memd.wire.streams import SubscribeParams, SubscribeResult
from tests.clients.scripted import rows_event

OPERATOR = Path("/home/u/.jackin/run/memd.sock")
INSTANCE = Path("/home/u/.jackin/sockets/jk-a2b3c4d5-shop/memd.sock")


@pytest.mark.parametrize(
    ("error", "path", "said", "hint"),
    [
        (FileNotFoundError(), OPERATOR, "not running", "jackin-memd start"),
        (NotADirectoryError(), OPERATOR, "not running", "--home"),
        (ConnectionRefusedError(), OPERATOR, "nobody listens", "jackin-memd start"),
        (PermissionError(), OPERATOR, "may not be opened", "as the user"),
        (BlockingIOError(), OPERATOR, "queue is full", "jackin-memd restart"),
        (OSError(errno.EIO, "I/O error"), OPERATOR, "I/O error", "jackin-memd start"),
        (FileNotFoundError(), INSTANCE, "not running", "instance load jk-a2b3c4d5-shop"),
        (FileNotFoundError(), IN_CONTAINER_SOCKET, "not running", "on the host"),
    ],
)
def test_why_it_is_unreachable_and_what_to_do(
    error: OSError, path: Path, said: str, hint: str
) -> None:
    told = failures.unreachable(path, error)
    assert told.code is ErrorCode.DAEMON_UNREACHABLE
    assert said in told.message
    assert str(path) in told.message
    assert hint in (told.hint or "")


def test_an_error_that_is_raised_again_is_a_copy_with_all_it_says() -> None:
    first = MemdError(ErrorCode.CURSOR_INVALID, "m", hint="h", field="f", details={"a": 1})
    second = failures.again(first)
    assert second is not first
    assert (second.code, second.message) == (first.code, first.message)
    assert second.data() == first.data()


def test_only_writes_get_a_key_and_only_where_they_have_none() -> None:
    purge = METHODS["instance.purge"]
    given_key = InstancePurgeParams(instance="a", idempotency_key="mine")
    assert with_key(purge, given_key) is given_key
    made = with_key(purge, InstancePurgeParams(instance="a"))
    assert made.instance == "a"
    assert made.idempotency_key
    read = InstanceGetParams(instance="a")
    assert with_key(METHODS["instance.get"], read) is read


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_that_writes_can_carry_a_key(method: object) -> None:
    found = find_method(method)  # type: ignore[arg-type]
    takes_key = "idempotency_key" in found.params.__struct_fields__
    assert takes_key == (found.effect is Effect.WRITE)


def test_what_may_be_repeated() -> None:
    closed = failures.closed(OPERATOR)
    assert may_repeat(METHODS["status.record"], closed)
    assert may_repeat(METHODS["status.list"], closed)
    assert not may_repeat(METHODS["shutdown"], closed)
    assert not may_repeat(METHODS["status.record"], failures.timed_out("status.record", 1))


def test_attempts_come_slower_up_to_a_bound() -> None:
    first = list(islice(delays(), 10))
    assert first[:4] == [0.05, 0.1, 0.2, 0.4]
    assert first[-2:] == [2.0, 2.0]


@given(st.data())
def test_any_split_of_the_bytes_is_the_same_stream(data: st.DataObject) -> None:
    """Cursors move with what was handed out, however the bytes arrive."""
    stream = b"".join(
        frame(encode({"jsonrpc": "2.0", "method": "stream.rows", "params": rows_event(number)}))
        for number in range(1, 5)
    )
    session = Session(Settings(path=OPERATOR))
    resume = Resume(SubscribeParams())
    resume.started(SubscribeResult(subscription="s1", cursors={"a": "e.0"}))
    seen = 0
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        session.receive(stream[:size])
        stream = stream[size:]
        if data.draw(st.booleans()):
            while resume.take(session) is not None:
                seen += 1
                assert resume.cursors == {"a": f"e.{seen}"}
    while resume.take(session) is not None:
        seen += 1
    assert seen == 4
    assert resume.params().after == {"a": "e.4"}


def test_a_given_place_is_kept_until_something_comes() -> None:
    resume = Resume(SubscribeParams(after={"a": "e.3"}))
    resume.started(SubscribeResult(subscription="s1", cursors={"a": "e.3", "b": "f.0"}))
    assert resume.params().after == {"a": "e.3", "b": "f.0"}


def test_the_first_reason_for_the_end_stays() -> None:
    session = Session(Settings(path=OPERATOR))
    session.fail(MemdError(ErrorCode.DAEMON_STOPPING, "stopping"))
    session.receive(b"")
    assert session.over is not None
    assert session.over.code is ErrorCode.DAEMON_STOPPING
