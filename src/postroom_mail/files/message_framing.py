"""Messages between two processes: a length of four bytes, then msgpack."""

import struct
from collections.abc import Iterator

import msgspec

LENGTH = struct.Struct(">I")


class FrameTooLarge(Exception):
    """The other end announces a message above the limit."""


def encode_frame(message: object) -> bytes:
    body = msgspec.msgpack.encode(message)
    return LENGTH.pack(len(body)) + body


class FrameDecoder:
    """Takes bytes as they arrive, and yields whole messages."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._missing = LENGTH.size  # bytes needed before another look makes sense

    def feed(self, data: bytes) -> Iterator[bytes]:
        self._buffer += data
        if len(self._buffer) < self._missing:
            return
        position = 0
        while (end := self._end_of_frame(position)) <= len(self._buffer):
            yield bytes(memoryview(self._buffer)[position + LENGTH.size : end])
            position = end
        del self._buffer[:position]
        self._missing = end - position

    def _end_of_frame(self, position: int) -> int:
        if len(self._buffer) < position + LENGTH.size:
            return position + LENGTH.size
        (size,) = LENGTH.unpack_from(self._buffer, position)
        if size > self._max_bytes:
            raise FrameTooLarge
        return position + LENGTH.size + int(size)
