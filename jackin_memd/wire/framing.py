"""Frames: a 4-byte big-endian length, then that many bytes.

The length prefix and its default limit are the Capsule's own, so the first
byte of a frame is always zero under it. No JSON and no sockets here.
"""

from __future__ import annotations

from jackin_memd.wire.errors import ErrorCode, MemdError

PREFIX_BYTES = 4

#: The Capsule's limit in both directions (`crates/jackin-capsule/src/socket.rs`).
DEFAULT_MAX_FRAME_BYTES = 4 * 1024 * 1024

#: What the prefix could say at most: a limit above it would never be reached.
MAX_PREFIX = 2**32 - 1


def frame(payload: bytes | bytearray) -> bytes:
    """The payload behind its length."""
    return len(payload).to_bytes(PREFIX_BYTES, "big") + payload


class FrameDecoder:
    """Turns any split of a byte stream into the same frames.

    A refused length is refused before its bytes are kept. After an error the
    stream has no known boundary any more, so the decoder stays broken.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self._max = max_frame_bytes
        self._buffer = bytearray()
        self._broken = False

    @property
    def buffered_bytes(self) -> int:
        return len(self._buffer)

    @property
    def mid_frame(self) -> bool:
        """Whether a frame has begun that is not complete."""
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes, return the frames that they complete.

        Raises FrameError when a length is refused; it carries the frames
        that were complete before it.
        """
        if self._broken:
            raise RuntimeError("fed after a framing error")
        buffer = self._buffer
        length = len(data) - PREFIX_BYTES
        if not buffer and 0 < length <= self._max and int.from_bytes(data[:4], "big") == length:
            return [data[PREFIX_BYTES:]]  # mostly what comes is one whole frame
        buffer += data
        frames: list[bytes] = []
        start = 0
        while len(buffer) - start >= PREFIX_BYTES:
            length = int.from_bytes(buffer[start : start + PREFIX_BYTES], "big")
            if length == 0 or length > self._max:
                self._broken = True
                buffer.clear()
                raise FrameError(self._refusal(length), frames)
            end = start + PREFIX_BYTES + length
            if len(buffer) < end:
                break
            frames.append(bytes(buffer[start + PREFIX_BYTES : end]))
            start = end
        if start:
            del buffer[:start]
        return frames

    def _refusal(self, length: int) -> MemdError:
        if length == 0:
            return MemdError(
                ErrorCode.FRAME_EMPTY,
                "a frame of 0 bytes is not a message",
                hint="send the length of the JSON text as 4 bytes, big-endian, before it",
            )
        return MemdError(
            ErrorCode.FRAME_TOO_LARGE,
            f"a frame of {length} bytes is over the limit of {self._max} bytes",
            hint="split the call; frames begin with the length as 4 bytes, big-endian",
            details={"limit_bytes": self._max, "announced_bytes": length},
        )


class FrameError(Exception):
    """A refused length, with the frames that were complete before it."""

    def __init__(self, error: MemdError, completed: list[bytes]) -> None:
        super().__init__(str(error))
        self.error = error
        self.completed = completed
