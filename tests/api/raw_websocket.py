"""A WebSocket client on a bare socket, free to break every rule of RFC 6455."""

import asyncio
import base64
import json
import socket
import struct
from dataclasses import dataclass
from typing import Any

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
MASK = b"\x37\xfa\x21\x3d"
PATIENCE_SECONDS = 120
CHOPPED_UP_TO_BYTES = 400
BUFFER_BYTES = 64 * 1024


@dataclass(frozen=True)
class Frame:
    opcode: int
    payload: bytes
    is_final: bool = True

    @property
    def close_code(self) -> int:
        return int.from_bytes(self.payload[:2], "big")


def encode(
    opcode: int, payload: bytes = b"", *, is_final: bool = True, reserved: int = 0, is_masked: bool = True
) -> bytes:
    """Any frame, allowed or not; the length in its shortest form (section 5.2)."""
    first = bytes([is_final << 7 | reserved << 4 | opcode])
    size = len(payload)
    bit = 0x80 if is_masked else 0
    if size < 126:
        head = first + bytes([bit | size])
    elif size < 65536:
        head = first + struct.pack("!BH", bit | 126, size)
    else:
        head = first + struct.pack("!BQ", bit | 127, size)
    return head + (MASK + apply_mask(payload) if is_masked else payload)


def apply_mask(payload: bytes) -> bytes:
    key = int.from_bytes((MASK * (len(payload) // 4 + 1))[: len(payload)], "big")
    return (int.from_bytes(payload, "big") ^ key).to_bytes(len(payload), "big")


class RawWebSocket:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.is_chopped = False  # each byte of a short message in a packet of its own

    async def send(self, *frames: bytes) -> None:
        data = b"".join(frames)
        size = 1 if self.is_chopped and len(data) <= CHOPPED_UP_TO_BYTES else len(data)
        try:
            for start in range(0, len(data), size):
                self.writer.write(data[start : start + size])
                await self.writer.drain()
                await asyncio.sleep(0)
        except ConnectionError:
            return  # the server may close before it has heard all: what it said can still be read

    async def say(self, **message: Any) -> None:
        await self.send(encode(TEXT, json.dumps(message).encode()))

    async def receive(self) -> Frame | None:
        """None when the server has closed the connection."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                first, second = await self._reader.readexactly(2)
                size = second & 0x7F
                if size >= 126:
                    size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8), "big")
                assert not second & 0x80, "a server masks nothing (section 5.1)"
                assert not first & 0x70, "no extension was agreed"
                payload = await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return Frame(first & 0x0F, payload, bool(first & 0x80))

    async def hear(self) -> dict[str, Any]:
        frame = await self.receive()
        assert frame is not None
        assert frame.opcode == TEXT, frame
        heard: dict[str, Any] = json.loads(frame.payload)
        return heard

    async def close_frame(self) -> Frame | None:
        """The close frame, whatever comes before it; None when the connection ends without one."""
        while (frame := await self.receive()) is not None:
            if frame.opcode == CLOSE:
                return frame
        return None

    async def is_ended(self) -> bool:
        """Nothing more comes after the close frame."""
        return await self.receive() is None


async def open_raw(base_url: str, token: str, path: str = "/v1/ws") -> RawWebSocket:
    host, _, port = base_url.removeprefix("http://").partition(":")
    # A small window and buffer, so that a client that stops reading is felt soon.
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=connection, limit=BUFFER_BYTES)
    key = base64.b64encode(b"0123456789abcdef").decode()
    writer.write(
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
        f"Authorization: Bearer {token}\r\n\r\n".encode()
    )
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 101 "), head
    return RawWebSocket(reader, writer)
