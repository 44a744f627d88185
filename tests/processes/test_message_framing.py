"""Frames between processes: however the bytes are cut, the messages come out whole and in order."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from postroom_mail.files.message_framing import LENGTH, FrameDecoder, FrameTooLarge, encode_frame


@given(st.lists(st.binary(max_size=300), max_size=20), st.lists(st.integers(1, 50), min_size=1))
def test_frames_come_out_whole_however_they_are_cut(messages: list[bytes], cuts: list[int]) -> None:
    stream, unframer = b"".join(map(encode_frame, messages)), FrameDecoder(1_000)
    found: list[bytes] = []
    position = number = 0
    while position < len(stream):
        size = cuts[number % len(cuts)]
        found += unframer.feed(stream[position : position + size])
        position, number = position + size, number + 1
    assert [msgspec.msgpack.decode(frame) for frame in found] == messages


def test_a_frame_that_says_it_is_too_large_is_refused_before_it_comes() -> None:
    with pytest.raises(FrameTooLarge):
        list(FrameDecoder(1_000).feed(LENGTH.pack(1_001)))
