"""One connection's calls, answers and stream events, without I/O.

The blocking and the trio face drive this same class: they send the bytes of
`begin`, hand what arrives to `receive`, and find answers by their id in
`answers`, stream events in `events`, and why the connection is over in `over`.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from jackin_mem import failures
from jackin_memd import __version__
from jackin_memd.wire import streams
from jackin_memd.wire.codec import RequestId
from jackin_memd.wire.errors import ErrorCode, MemdError
from jackin_memd.wire.framing import DEFAULT_MAX_FRAME_BYTES, PREFIX_BYTES
from jackin_memd.wire.methods import METHODS, Effect, Method
from jackin_memd.wire.peer import Answer, Call, Event, Peer
from jackin_memd.wire.session import HelloParams, HelloResult
from jackin_memd.wire.streams import EndEvent, GapEvent, RowsEvent
from jackin_memd.wire.vocab import PROTOCOL_VERSION, Role

DEFAULT_TIMEOUT_S = 10.0

#: What `hello` tells the daemon about us, for its log.
BUILD = f"jackin-mem/{__version__}"

StreamEvent = RowsEvent | GapEvent | EndEvent

HELLO = METHODS["hello"]

_events: dict[str, msgspec.json.Decoder[Any]] = {
    streams.ROWS: msgspec.json.Decoder(RowsEvent),
    streams.GAP: msgspec.json.Decoder(GapEvent),
    streams.END: msgspec.json.Decoder(EndEvent),
}

#: Made at first use: a command calls one or two methods of many.
_results: dict[str, msgspec.json.Decoder[Any]] = {}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach the daemon and who to be there."""

    path: Path
    timeout_s: float = DEFAULT_TIMEOUT_S
    """For a call that names none; from connecting to the last byte of the answer."""
    role: Role = Role.OPERATOR
    build: str = BUILD


class Session:
    """The state of one connection, from hello to its end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.path = settings.path
        self._peer = Peer(answers=True)
        self._open: set[RequestId] = set()
        self._given_up: set[RequestId] = set()
        self._max_frame_bytes = DEFAULT_MAX_FRAME_BYTES
        self.answers: dict[RequestId, Answer] = {}
        self.events: deque[StreamEvent] = deque()
        self.over: MemdError | None = None
        self.hello: HelloResult | None = None
        self.mismatch: MemdError | None = None

    # -- outgoing ---------------------------------------------------------

    def begin(self, method: str, params: Any) -> tuple[RequestId, bytes]:
        """The id and the frame of a call. Raises MemdError: FRAME_TOO_LARGE, and
        PROTOCOL_MISMATCH where only methods of any version may be called."""
        if self.mismatch is not None and not _any_version(method):
            raise failures.again(self.mismatch)
        id_, frame = self._peer.call(method, params)
        if len(frame) - PREFIX_BYTES > self._max_frame_bytes:
            raise self._too_large(method, len(frame) - PREFIX_BYTES)
        self._open.add(id_)
        return id_, frame

    def begin_hello(self) -> tuple[RequestId, bytes]:
        settings = self._settings
        params = HelloParams(
            protocol_version=PROTOCOL_VERSION, build=settings.build, role=settings.role
        )
        return self.begin(HELLO.name, params)

    def greeted(self, answer: Answer) -> None:
        """Take the answer to hello. Raises MemdError; a PROTOCOL_MISMATCH is kept for
        the calls that it concerns, since some are answered whatever the version."""
        if answer.error is None:
            self.hello = decode_result(self.path, HELLO, answer)
            self._max_frame_bytes = self.hello.max_frame_bytes
        elif answer.error.code is ErrorCode.PROTOCOL_MISMATCH:
            self.mismatch = answer.error
        else:
            raise answer.error

    def give_up(self, id_: RequestId) -> None:
        """Nobody waits for this answer any more; it is dropped when it comes."""
        if id_ in self._open:
            self._open.discard(id_)
            self._given_up.add(id_)
        self.answers.pop(id_, None)

    # -- incoming ---------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Take what the daemon sent; no bytes mean that it closed the connection."""
        if not data:
            self.fail(failures.closed(self.path))
            return
        for event in self._peer.receive_data(data):
            self._take(event)

    def fail(self, error: MemdError) -> None:
        """The connection is over. The first reason stays: it explains the others."""
        if self.over is None:
            self.over = error

    def _take(self, event: Event) -> None:
        if isinstance(event, Answer):
            self._take_answer(event)
        elif isinstance(event, Call):
            self._take_call(event)
        else:
            self._violated(event.error.message)

    def _take_answer(self, answer: Answer) -> None:
        id_ = answer.id
        if id_ in self._open:
            self._open.discard(id_)
            self.answers[id_] = answer
        elif id_ in self._given_up:
            self._given_up.discard(id_)
        elif id_ is None and answer.error is not None:
            self.fail(answer.error)  # the daemon's farewell: it closes after this
        else:
            self._violated("it answered a call that was not made")

    def _take_call(self, call: Call) -> None:
        decoder = _events.get(call.method)
        if call.wants_reply:
            self._violated(f"it called {call.method[:40]!r}, and clients take no calls")
        elif decoder is not None:
            try:
                self.events.append(decoder.decode(call.params or b"{}"))
            except msgspec.DecodeError as error:
                self._violated(f"{call.method} does not fit its type: {error}")

    def _violated(self, what: str) -> None:
        self.fail(failures.violation(self.path, what))

    def _too_large(self, method: str, size: int) -> MemdError:
        return MemdError(
            ErrorCode.FRAME_TOO_LARGE,
            f"the call of {method} has {size} bytes; the daemon takes {self._max_frame_bytes}",
            hint="split it into several calls",
            details={"limit_bytes": self._max_frame_bytes, "bytes": size},
        )


def _any_version(name: str) -> bool:
    method = METHODS.get(name)
    return method is not None and method.any_version


def find_method(method: str | Method) -> Method:
    """The method of this name. Raises MemdError (METHOD_NOT_FOUND) with near ones."""
    if isinstance(method, Method):
        return method
    try:
        return METHODS[method]
    except KeyError:
        raise unknown_method(method) from None


def unknown_method(name: str) -> MemdError:
    """METHOD_NOT_FOUND, with what the caller may have meant."""
    from difflib import get_close_matches

    near = get_close_matches(name, METHODS, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return MemdError(
        ErrorCode.METHOD_NOT_FOUND,
        f"there is no method {name[:100]!r}",
        hint=f"{hint}jackin-mem raw --list shows all methods",
    )


def decode_result(path: Path, method: Method, answer: Answer) -> Any:
    """An answer as the method's result type.

    Raises the MemdError that it carries, or PROTOCOL_VIOLATION where it has
    another shape than the method's.
    """
    if answer.error is not None:
        raise answer.error
    decoder = _results.get(method.name)
    if decoder is None:
        decoder = _results[method.name] = msgspec.json.Decoder(method.result)
    try:
        return decoder.decode(answer.result)
    except msgspec.DecodeError as error:
        what = f"its answer to {method.name} does not fit: {error}"
        raise failures.violation(path, what) from None


def with_key(method: Method, params: Any) -> Any:
    """The params with an idempotency key, where they take one and have none."""
    if method.effect is not Effect.WRITE or params.idempotency_key is not None:
        return params
    return msgspec.structs.replace(params, idempotency_key=uuid4().hex)


def may_repeat(method: Method, error: MemdError) -> bool:
    """Whether a call that failed so can be sent once more without doing it twice
    (given that `with_key` saw its params)."""
    safe = method.effect in (Effect.READ, Effect.WRITE)
    return safe and error.code is ErrorCode.CONNECTION_CLOSED
