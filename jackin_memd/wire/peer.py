"""One end of a JSON-RPC connection, without I/O.

Feed it bytes and get events; ask it for frames and get bytes. The daemon, the
blocking client and the trio client drive this same class. Whatever a peer
sends, `receive_data` raises nothing: a message that can't be understood comes
out as a `Refusal` to send back, a broken stream as a final `Broken`.
"""

from __future__ import annotations

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
    """The replies that one batch still waits for."""

    __slots__ = ("open_calls", "replies")

    def __init__(self) -> None:
        self.open_calls = 0
        self.replies: list[bytes] = []


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
            if not entries:
                raise MemdError(ErrorCode.INVALID_REQUEST, "a batch must not be empty")
            if len(entries) > self._max_batch:
                raise MemdError(
                    ErrorCode.BATCH_TOO_LARGE,
                    f"a batch of {len(entries)} entries is over the limit of {self._max_batch}",
                    hint="split the batch, or use a method that takes many rows in one call",
                    details={"limit": self._max_batch},
                )
        except MemdError as error:
            return [Refusal(self._frame_error(None, error), error)]
        return self._read_entries(entries)

    def _read_entries(self, entries: list[Raw]) -> list[Event]:
        batch = Batch()
        events: list[Event] = []
        for entry in entries:
            try:
                event = self._interpret(codec.decode_envelope(entry), batch)
            except MemdError as error:
                batch.replies.append(_error_bytes(codec.readable_id(entry), error))
                continue
            if isinstance(event, Call) and event.wants_reply:
                batch.open_calls += 1
            events.append(event)
        if batch.open_calls == 0 and batch.replies:
            refused = MemdError(ErrorCode.INVALID_REQUEST, "no entry of the batch is a request")
            events.append(Refusal(self._frame_batch(batch), refused))
        return events

    def _interpret(self, envelope: codec.Envelope, batch: Batch | None) -> Event:
        method, result, error = envelope.method, envelope.result, envelope.error
        if not isinstance(method, UnsetType):
            if result is not UNSET or error is not UNSET:
                raise _invalid("a message has `method` or `result` and `error`, not both")
            if envelope.id is None:
                raise _invalid("the id of a request must be a string or an integer")
            return Call(envelope.id, method, envelope.params, batch)
        if result is UNSET and error is UNSET:
            raise _invalid("the message has no `method`")
        if not self._answers:
            raise _invalid("this peer makes no calls, so it takes no responses")
        if result is not UNSET and error is not UNSET:
            raise _invalid("a response has `result` or `error`, not both")
        id_ = None if isinstance(envelope.id, UnsetType) else envelope.id
        if not isinstance(error, UnsetType):
            return Answer(id_, Raw(b"null"), from_wire(error.code, error.message, error.data))
        assert not isinstance(result, UnsetType)
        return Answer(id_, result, None)

    # -- outgoing ---------------------------------------------------------

    def call(self, method: str, params: Any) -> tuple[int, bytes]:
        """A request: its id and its frame."""
        id_ = next(self._ids)
        return id_, frame(codec.encode(codec.OutgoingRequest("2.0", id_, method, params)))

    def notify(self, method: str, params: Any) -> bytes:
        """A notification's frame."""
        return frame(codec.encode(codec.OutgoingRequest("2.0", UNSET, method, params)))

    def result(self, call: Call, value: Any) -> bytes | None:
        """The frame that answers the call, or None where nothing is to be sent yet."""
        if isinstance(call.id, UnsetType):
            return None
        payload = codec.encode(codec.OutgoingResult("2.0", call.id, value))
        if len(payload) > self._max_frame_bytes:
            return self.failure(call, self._reply_too_large(len(payload)))
        return self._settle(call, payload)

    def failure(self, call: Call, error: MemdError) -> bytes | None:
        """Like `result`, for a call that failed."""
        if isinstance(call.id, UnsetType):
            return None
        return self._settle(call, _error_bytes(call.id, error))

    def _settle(self, call: Call, payload: bytes) -> bytes | None:
        batch = call.batch
        if batch is None:
            return frame(payload)
        batch.replies.append(payload)
        batch.open_calls -= 1
        return self._frame_batch(batch) if batch.open_calls == 0 else None

    def _frame_batch(self, batch: Batch) -> bytes:
        """All replies of a batch; those that don't fit one frame become errors."""
        kept: list[bytes] = []
        room = self._max_frame_bytes - 2
        reserve = 512  # what an error in the place of a reply may take
        for index, reply in enumerate(batch.replies):
            if len(reply) + 1 + reserve * (len(batch.replies) - index - 1) > room:
                error = self._reply_too_large(len(reply))
                reply = _error_bytes(codec.readable_id(reply), error)
            kept.append(reply)
            room -= len(reply) + 1
        return frame(b"[" + b",".join(kept) + b"]")

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
