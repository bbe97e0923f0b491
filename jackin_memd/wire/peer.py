"""One end of a JSON-RPC connection, without I/O.

Feed it bytes and get events; ask it for frames and get bytes. The daemon, the
blocking client and the trio client drive this same class. Whatever a peer
sends, `receive_data` raises nothing: a message that can't be understood comes
out as a `Refusal` to send back, a broken stream as a final `Broken`.
"""

from __future__ import annotations

from functools import cached_property
from itertools import count
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from jackin_memd.wire import codec
from jackin_memd.wire.codec import RequestId
from jackin_memd.wire.errors import ErrorCode, MemdError, from_wire
from jackin_memd.wire.framing import DEFAULT_MAX_FRAME_BYTES, FrameDecoder, FrameError, frame

DEFAULT_MAX_BATCH = 1000


class Batch:
    """The replies that one batch still waits for, and the one frame they share.

    `reserved` is what the open calls need at least: each may end as a notice
    that its reply did not fit. So the frame never overflows, and what waits
    here is never more than one frame.
    """

    __slots__ = ("open_calls", "replies", "reserved", "size")

    def __init__(self) -> None:
        self.open_calls = 0
        self.replies: list[bytes] = []
        self.reserved = 0
        self.size = 1  # the brackets, less the comma that the last reply has not

    def add(self, reply: bytes) -> None:
        self.replies.append(reply)
        self.size += len(reply) + 1


class Call(msgspec.Struct, frozen=True):
    """A request, or a notification (no reply) where `id` is unset."""

    id: RequestId | UnsetType
    method: str
    params: Raw | UnsetType
    batch: Batch | None = None

    @property
    def wants_reply(self) -> bool:
        return self.id is not UNSET


class Answer(msgspec.Struct, frozen=True):
    """A response to a call of ours. `id` is None where the peer could not read ours."""

    id: RequestId | None
    result: Raw
    error: MemdError | None


class Refusal(msgspec.Struct, frozen=True):
    """A message that can't be acted on; `frame` is the reply that says why."""

    frame: bytes
    error: MemdError


class Broken(msgspec.Struct, frozen=True):
    """No frame boundary is left: send `frame`, then close. Always the last event."""

    frame: bytes
    error: MemdError


Event = Call | Answer | Refusal | Broken


class Peer:
    """The state of one connection end.

    `answers` says whether this end makes calls and so expects responses; an
    end that does not refuses them.
    """

    def __init__(
        self,
        *,
        answers: bool,
        max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES,
        max_batch: int = DEFAULT_MAX_BATCH,
    ) -> None:
        self._decoder = FrameDecoder(max_frame_bytes)
        self._max_frame_bytes = max_frame_bytes
        self._max_batch = max_batch
        self._answers = answers
        self._ids = count(1)

    @property
    def mid_frame(self) -> bool:
        """Whether a frame has begun that is not complete."""
        return self._decoder.mid_frame

    @property
    def buffered_bytes(self) -> int:
        """What is kept of a frame that is not complete."""
        return self._decoder.buffered_bytes

    # -- incoming ---------------------------------------------------------

    def receive_data(self, data: bytes) -> list[Event]:
        """Take bytes from the peer; return what they mean, in order."""
        try:
            payloads = self._decoder.feed(data)
        except FrameError as broken:
            events = [event for payload in broken.completed for event in self._read(payload)]
            return [*events, Broken(self.farewell(broken.error), broken.error)]
        if len(payloads) == 1:
            return self._read(payloads[0])
        return [event for payload in payloads for event in self._read(payload)]

    def farewell(self, error: MemdError) -> bytes:
        """The frame to send before closing: an error that answers no particular call."""
        return self._frame_error(None, error)

    def _read(self, payload: bytes) -> list[Event]:
        if codec.is_batch(payload):
            return self._read_batch(payload)
        try:
            return [self._interpret(codec.decode_envelope(payload), None)]
        except MemdError as error:
            reply = self._frame_error(codec.readable_id(payload), error)
            return [Refusal(reply, error)]

    def _read_batch(self, payload: bytes) -> list[Event]:
        try:
            entries = codec.decode_batch(payload)
            self._check_batch(len(entries))
        except MemdError as error:
            return [Refusal(self._frame_error(None, error), error)]
        return self._read_entries(entries)

    def _check_batch(self, entries: int) -> None:
        if not entries:
            raise _invalid("a batch must not be empty")
        if entries > self._max_batch:
            raise MemdError(
                ErrorCode.BATCH_TOO_LARGE,
                f"a batch of {entries} entries is over the limit of {self._max_batch}",
                hint="split the batch, or use a method that takes many rows in one call",
                details={"limit": self._max_batch},
            )

    def _read_entries(self, entries: list[Raw]) -> list[Event]:
        batch = Batch()
        events: list[Event] = []
        for entry in entries:
            try:
                event = self._interpret(codec.decode_envelope(entry), batch)
            except MemdError as error:
                batch.add(_error_bytes(codec.readable_id(entry), error))
                continue
            if isinstance(event, Call) and not isinstance(event.id, UnsetType):
                batch.open_calls += 1
                batch.reserved += self._notice_size(event.id)
            events.append(event)
        if batch.size + batch.reserved > self._max_frame_bytes:
            return [self._refuse_batch(len(entries))]
        if batch.open_calls == 0 and batch.replies:
            refused = MemdError(ErrorCode.INVALID_REQUEST, "no entry of the batch is a request")
            events.append(Refusal(self._frame_batch(batch), refused))
        return events

    def _refuse_batch(self, entries: int) -> Refusal:
        """None of its calls is made: their replies might be lost."""
        error = MemdError(
            ErrorCode.BATCH_TOO_LARGE,
            f"the replies to {entries} entries do not fit a frame of {self._max_frame_bytes} bytes",
            hint="split the batch",
            details={"limit_bytes": self._max_frame_bytes},
        )
        return Refusal(self._frame_error(None, error), error)

    def _interpret(self, envelope: codec.Envelope, batch: Batch | None) -> Event:
        method, result, error = envelope.method, envelope.result, envelope.error
        if not isinstance(method, UnsetType):
            if result is not UNSET or error is not UNSET:
                raise _invalid("a message has `method` or `result` and `error`, not both")
            if envelope.id is None:
                raise _invalid("the id of a request must be a string or an integer")
            return Call(envelope.id, method, envelope.params, batch)
        if not self._answers and (result is not UNSET or error is not UNSET):
            raise _invalid("this peer makes no calls, so it takes no responses")
        id_ = None if isinstance(envelope.id, UnsetType) else envelope.id
        if isinstance(error, UnsetType):
            if isinstance(result, UnsetType):
                raise _invalid("the message has no `method`")
            return Answer(id_, result, None)
        if result is not UNSET:
            raise _invalid("a response has `result` or `error`, not both")
        return Answer(id_, Raw(b"null"), from_wire(error.code, error.message, error.data))

    # -- outgoing ---------------------------------------------------------

    def call(self, method: str, params: Any) -> tuple[int, bytes]:
        """A request: its id and its frame. Raises MemdError (FRAME_TOO_LARGE)."""
        id_ = next(self._ids)
        return id_, self._frame(codec.OutgoingRequest("2.0", id_, method, params))

    def notify(self, method: str, params: Any) -> bytes:
        """A notification's frame. Raises MemdError (FRAME_TOO_LARGE)."""
        return self._frame(codec.OutgoingRequest("2.0", UNSET, method, params))

    def result(self, call: Call, value: Any) -> bytes | None:
        """The frame that answers the call, or None where nothing is to be sent yet."""
        if isinstance(call.id, UnsetType):
            return None
        payload = codec.encode(codec.OutgoingResult("2.0", call.id, value))
        if len(payload) > self._max_frame_bytes:
            return self.failure(call, self._reply_too_large(len(payload)))
        return self._settle(call.id, call.batch, payload)

    def failure(self, call: Call, error: MemdError) -> bytes | None:
        """Like `result`, for a call that failed."""
        if isinstance(call.id, UnsetType):
            return None
        payload = _error_bytes(call.id, error)
        if len(payload) > self._max_frame_bytes:
            payload = _error_bytes(call.id, self._reply_too_large(len(payload)))
        return self._settle(call.id, call.batch, payload)

    def _settle(self, id_: RequestId, batch: Batch | None, payload: bytes) -> bytes | None:
        if batch is None:
            return frame(payload)
        batch.reserved -= self._notice_size(id_)
        batch.open_calls -= 1
        if batch.size + len(payload) + 1 + batch.reserved > self._max_frame_bytes:
            payload = _error_bytes(id_, self._notice)
        batch.add(payload)
        return self._frame_batch(batch) if batch.open_calls == 0 else None

    def _frame_batch(self, batch: Batch) -> bytes:
        return frame(b"[" + b",".join(batch.replies) + b"]")

    @cached_property
    def _notice(self) -> MemdError:
        """What takes the place of a reply that its batch's frame has no room for."""
        return MemdError(
            ErrorCode.REPLY_TOO_LARGE,
            f"the replies of this batch are over the frame limit of {self._max_frame_bytes}",
            hint="ask for fewer rows a page, or send smaller batches",
            details={"limit_bytes": self._max_frame_bytes},
        )

    @cached_property
    def _notice_base(self) -> int:
        return len(_error_bytes(None, self._notice)) - len("null") + 1

    def _notice_size(self, id_: RequestId) -> int:
        return self._notice_base + len(codec.encode(id_))

    def _frame(self, message: codec.OutgoingRequest) -> bytes:
        payload = codec.encode(message)
        if len(payload) > self._max_frame_bytes:
            raise MemdError(
                ErrorCode.FRAME_TOO_LARGE,
                f"{message.method} of {len(payload)} bytes is over the frame limit of "
                f"{self._max_frame_bytes}",
                hint="split the call",
                details={"limit_bytes": self._max_frame_bytes},
            )
        return frame(payload)

    def _frame_error(self, id_: RequestId | None, error: MemdError) -> bytes:
        return frame(_error_bytes(id_, error))

    def _reply_too_large(self, size: int) -> MemdError:
        return MemdError(
            ErrorCode.REPLY_TOO_LARGE,
            f"the reply of {size} bytes is over the frame limit of {self._max_frame_bytes}",
            hint="ask for fewer rows a page, or send smaller batches",
            details={"limit_bytes": self._max_frame_bytes},
        )


def _error_bytes(id_: RequestId | None, error: MemdError) -> bytes:
    return codec.encode(codec.OutgoingError("2.0", id_, codec.error_object(error)))


def _invalid(message: str) -> MemdError:
    return MemdError(ErrorCode.INVALID_REQUEST, message)
