"""The WebSocket protocol of streams: events are encoded once for all clients, and each client has limits."""

import asyncio
import contextlib
import functools
import struct
from collections import deque
from collections.abc import Sequence
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import State

EXTENSION = "postroom.frames"
BUFFER_LIMIT_BYTES = 1024 * 1024
STALL_SECONDS = 3.0
CLOSE_SECONDS = 5.0
FRAGMENTS_LIMIT = 1000
PING_SECONDS, PONG_SECONDS = 30, 10
MESSAGE_BYTES = 64 * 1024  # of a client
MESSAGES_PER_WINDOW = 30
WINDOW_SECONDS = 10.0
SLICE_BYTES = 4096
UNREAD_LIMIT = 2 * MESSAGES_PER_WINDOW

NOT_UTF8, TOO_BIG, BROKEN, TOO_SLOW, TOO_MANY_MESSAGES = 1007, 1009, 1011, 4013, 4029
BAD_PATH = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
FLOOD_REASON = "more than 30 messages in 10 seconds"

_FINAL_TEXT = 0x81


def text_frame(payload: bytes) -> bytes:
    """Return a complete unmasked text message (RFC 6455, section 5.2)."""
    size = len(payload)
    if size < 126:
        return bytes((_FINAL_TEXT, size)) + payload
    if size < 65536:
        return struct.pack("!BBH", _FINAL_TEXT, 126, size) + payload
    return struct.pack("!BBQ", _FINAL_TEXT, 127, size) + payload


def _is_utf8(parts: Sequence[bytes | bytearray]) -> bool:
    try:
        b"".join(parts).decode()
    except UnicodeDecodeError:
        return False
    return True


class StreamProtocol(WebSocketsSansIOProtocol):
    """uvicorn's protocol, passed to the application itself: ASGI has no message for a ready frame."""

    def __init__(self, *args: Any, came_from: tuple[str, int] | None = None, **named: Any) -> None:
        super().__init__(*args, **named)
        self._came_from = came_from

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.client = self._came_from or self.client

    def handle_connect(self, event: Request) -> None:
        try:
            super().handle_connect(event)
        except UnicodeError:  # of a path that is not ASCII
            self.close_sent = self.handshake_complete = True
            self.transport.write(BAD_PATH)
            self.transport.close()
        if hasattr(self, "scope"):
            self.scope["extensions"][EXTENSION] = {"frames": self}

    def send_receive_event_to_app(self) -> None:
        """Close the connection at text that is not UTF-8, and at floods; uvicorn would log a traceback."""
        if self.curr_msg_data_type == "text" and not _is_utf8(self.frames):
            self.frames = []
            if not self.close_sent:
                self.conn.send_close(NOT_UTF8)
                self.handle_parser_exception()
            return
        if self.queue.qsize() >= UNREAD_LIMIT:
            self.close_now(TOO_MANY_MESSAGES, FLOOD_REASON)
        super().send_receive_event_to_app()

    def write_frame(self, frame: bytes) -> bool:
        """Return False, and write nothing, if too much already waits for the client."""
        if self.close_sent or self.transport.is_closing():
            return True
        if self.transport.get_write_buffer_size() > BUFFER_LIMIT_BYTES:
            return False
        self.transport.write(frame)
        return True

    async def wait_until_writable(self) -> bool:
        """Return False if the client reads nothing for a while."""
        unsent_bytes = None
        while not self.writable.is_set():
            before, unsent_bytes = unsent_bytes, self.transport.get_write_buffer_size()
            if before is not None and unsent_bytes >= before:
                return False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STALL_SECONDS):
                    await self.writable.wait()
        return True

    @functools.cached_property
    def _heard_at(self) -> deque[float]:
        return deque(maxlen=MESSAGES_PER_WINDOW)

    def is_flooding(self) -> bool:
        """Return whether the last message was one too many; pings and empty fragments count as messages."""
        now = self.loop.time()
        is_full = len(self._heard_at) == MESSAGES_PER_WINDOW
        is_early = is_full and now - self._heard_at[0] < WINDOW_SECONDS
        self._heard_at.append(now)
        return is_early

    def _closes_flood(self) -> bool:
        if self.is_flooding():
            self.close_now(TOO_MANY_MESSAGES, FLOOD_REASON)
        return self.close_sent

    def handle_pong(self, event: Frame) -> None:
        if self.close_sent:
            return
        is_asked_for = self.pending_ping_payload == bytes(event.data)
        super().handle_pong(event)
        if not is_asked_for:
            self._closes_flood()

    def handle_ping(self) -> None:
        """Answer a ping.

        Pongs are limited too: a client that pings and never reads must not fill the memory.
        """
        if self._closes_flood():
            return
        if not self.write_frame(b"".join(self.conn.data_to_send())):
            self.close_now(TOO_SLOW, "too slow: answers to pings are not read")

    def handle_cont(self, event: Frame) -> None:
        """Count a fragment.

        Empty ones add nothing to the size of a message, so their number is bounded as well.
        """
        if self.close_sent or (not event.data and self._closes_flood()):
            return
        if len(self.frames) >= FRAGMENTS_LIMIT:
            self.close_now(TOO_BIG, "too many fragments")
            return
        super().handle_cont(event)

    def keepalive_timeout(self) -> None:
        self.stop_keepalive()
        self.close_now(BROKEN, "no answer to a ping")

    def data_received(self, data: bytes) -> None:
        """Feed data in slices.

        One read may hold thousands of tiny frames, and the first ones show the flood.
        """
        for start in range(0, len(data), SLICE_BYTES):
            if self.conn.parser_exc is not None or (self.close_sent and start):
                return
            super().data_received(data[start : start + SLICE_BYTES])

    def handle_close(self, event: Frame) -> None:
        if self.close_sent:
            super().handle_close(event)
            self._abort_soon()
        elif not self.transport.is_closing():
            self._hang_up()

    def handle_parser_exception(self) -> None:
        self._hang_up()

    def close_now(self, code: int, reason: str) -> None:
        """Sends the reason even to a client that reads nothing, which is disconnected a little later."""
        if self.close_sent or self.transport.is_closing() or self.conn.state is not State.OPEN:
            return
        self.conn.send_close(code, reason)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self._abort_soon()

    def _hang_up(self) -> None:
        """Sends the last bytes and ends our side. Reading goes on for a while: if closed before all was
        read, the connection is reset, and the client may never see why (RFC 6455 section 7.1.1).
        """
        close = self.conn.close_sent
        assert close is not None
        self.queue.put_nowait({"type": "websocket.disconnect", "code": close.code, "reason": close.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._abort_soon()

    def _abort_soon(self) -> None:
        """Abort soon.

        A transport closes after all is written: a client that reads nothing would delay that for ever.
        """
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        if self.close_timer is None:
            self.close_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)
