"""The network layer of webhooks: limits how much a target may send before and within its answer."""

import asyncio
import re
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2
from httpcore2 import AsyncNetworkBackend, AsyncNetworkStream

# For the head: 100 Continue and similar may come before the answer, but not for ever (RFC 9110 section 15.2).
# Of interim answers (RFC 9110 section 15.2), which httpcore would read without end.
BEFORE_ANSWER_BYTES = 4 * 1024
ANSWER_BYTES = 96 * 1024  # as transferred: chunks of one byte are six times their content
READ_BYTES = 1024  # a thousand small answers are read in pieces, so that others have their turn

_FINAL_STATUS = re.compile(rb"HTTP/1\.[01] [2-9]")
_LONGEST_STATUS = 10  # bytes, such as "HTTP/1.1 2"


class BoundedStream(AsyncNetworkStream):
    def __init__(self, stream: AsyncNetworkStream) -> None:
        self._stream = stream
        self._taken = 0
        self._tail = b""
        self._is_answered = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = await self._stream.read(min(max_bytes, READ_BYTES), timeout)
        await asyncio.sleep(0)
        self._taken += len(data)
        if self._taken > ANSWER_BYTES:
            raise httpcore2.ReadError("the answer is too long")
        if not self._is_answered:
            self._look_for_answer(data)
        return data

    def _look_for_answer(self, data: bytes) -> None:
        seen = self._tail + data
        self._is_answered = _FINAL_STATUS.search(seen) is not None
        self._tail = seen[-_LONGEST_STATUS:]
        if not self._is_answered and self._taken > BEFORE_ANSWER_BYTES:
            raise httpcore2.RemoteProtocolError("only interim answers came")

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> AsyncNetworkStream:
        return BoundedStream(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class BoundedNetwork(AsyncNetworkBackend):
    def __init__(self) -> None:
        self._backend = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> AsyncNetworkStream:
        stream = await self._backend.connect_tcp(host, port, timeout, local_address, socket_options)
        return BoundedStream(stream)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
