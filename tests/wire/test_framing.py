"""Frames: the same whatever the split, and no byte kept of what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jackin_memd.wire.errors import ErrorCode
from jackin_memd.wire.framing import DEFAULT_MAX_FRAME_BYTES, FrameDecoder, FrameError, frame
from tests.support.proves import proves
from tests.wire.streams_of_bytes import bytewise, split_at


def decoded(pieces: list[bytes], limit: int = 64) -> tuple[list[bytes], ErrorCode | None]:
    decoder = FrameDecoder(limit)
    frames: list[bytes] = []
    for piece in pieces:
        try:
            frames += decoder.feed(piece)
        except FrameError as broken:
            return frames + broken.completed, broken.error.code
    return frames, None


def refused(decoder: FrameDecoder, data: bytes) -> FrameError:
    with pytest.raises(FrameError) as caught:
        decoder.feed(data)
    return caught.value


@proves("wire-framing")
def test_a_frame_is_four_bytes_of_length_big_endian_and_the_payload() -> None:
    assert frame(b"x" * 258) == b"\x00\x00\x01\x02" + b"x" * 258


def test_the_default_limit_is_the_capsules_and_keeps_the_first_byte_zero() -> None:
    assert DEFAULT_MAX_FRAME_BYTES == 4_194_304
    assert frame(b"x" * DEFAULT_MAX_FRAME_BYTES)[0] == 0


@proves("wire-any-split")
@given(st.lists(st.binary(min_size=1, max_size=64)), st.lists(st.integers(0, 10_000)))
def test_any_split_of_good_frames_gives_them_back(payloads: list[bytes], cuts: list[int]) -> None:
    data = b"".join(map(frame, payloads))
    assert decoded(list(split_at(data, cuts))) == (payloads, None)
    assert decoded(list(bytewise(data))) == (payloads, None)


@proves("wire-any-split")
@given(st.binary(max_size=300), st.lists(st.integers(0, 10_000)))
def test_any_split_of_any_bytes_gives_the_same_frames_and_the_same_refusal(
    data: bytes, cuts: list[int]
) -> None:
    whole = decoded([data])
    assert decoded(list(split_at(data, cuts))) == whole
    assert decoded(list(bytewise(data))) == whole


@proves("wire-frame-limit")
def test_a_frame_of_exactly_the_limit_passes_and_one_byte_more_does_not() -> None:
    payload = b"x" * 100
    assert FrameDecoder(100).feed(frame(payload)) == [payload]
    assert decoded(list(bytewise(frame(payload))), 100) == ([payload], None)
    broken = refused(FrameDecoder(99), frame(payload))
    assert broken.error.code is ErrorCode.FRAME_TOO_LARGE
    assert broken.error.details == {"limit_bytes": 99, "announced_bytes": 100}


@proves("wire-frame-limit")
def test_a_length_over_the_limit_is_refused_from_its_prefix_alone() -> None:
    decoder = FrameDecoder(100)
    prefix = (101).to_bytes(4, "big")
    assert decoder.feed(prefix[:3]) == []
    refused(decoder, prefix[3:])
    assert decoder.buffered_bytes == 0


def test_nothing_is_kept_of_a_refused_frame_however_much_came_with_it() -> None:
    decoder = FrameDecoder(100)
    refused(decoder, b"\x7f\xff\xff\xff" + b"x" * 100_000)
    assert decoder.buffered_bytes == 0


def test_what_is_kept_of_an_unfinished_frame_is_what_came_of_it() -> None:
    decoder = FrameDecoder()
    decoder.feed(frame(b"done") + (1000).to_bytes(4, "big") + b"part")
    assert decoder.buffered_bytes == 8


@proves("wire-frame-limit")
def test_a_frame_of_zero_bytes_is_refused_with_what_would_be_right() -> None:
    broken = refused(FrameDecoder(), b"\0\0\0\0")
    assert broken.error.code is ErrorCode.FRAME_EMPTY
    assert broken.error.hint is not None


def test_frames_before_a_refused_length_are_handed_over_with_the_refusal() -> None:
    broken = refused(FrameDecoder(), frame(b"a") + frame(b"b") + b"\0\0\0\0" + frame(b"c"))
    assert broken.completed == [b"a", b"b"]


def test_a_broken_decoder_is_not_fed_again() -> None:
    decoder = FrameDecoder()
    refused(decoder, b"\0\0\0\0")
    with pytest.raises(RuntimeError):
        decoder.feed(frame(b"x"))


def test_a_frame_is_under_way_from_its_first_byte_to_its_last() -> None:
    decoder = FrameDecoder()
    seen = []
    for piece in bytewise(frame(b"ab")):
        decoder.feed(piece)
        seen.append(decoder.mid_frame)
    assert seen == [True] * 5 + [False]
