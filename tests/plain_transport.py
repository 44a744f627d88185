"""HTTP clients for the tests: httpx's own transport takes most of the time of a request."""

import asyncio
import contextlib
import functools
import select
import ssl
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType

import httptools
import httpx2

READ_BYTES = 256 * 1024
MAX_IDLE = 20  # as many as httpx keeps
PATIENCE_SECONDS = 120.0  # the machine that runs the tests may be busy
NONE: Mapping[str, str] = MappingProxyType({})

Origin = tuple[str, str, int | None]


@functools.cache
def trusting() -> ssl.SSLContext:
    """To read the certificates of the machine would take longer than most tests."""
    return httpx2.create_ssl_context(verify=False)


def http_client(
    base_url: str = "", headers: Mapping[str, str] = NONE, timeout: float = PATIENCE_SECONDS
) -> httpx2.AsyncClient:
    transport = PlainTransport(trusting())
    return httpx2.AsyncClient(
        base_url=base_url, headers=headers, timeout=timeout, transport=transport, trust_env=False
    )


class Line:
    """A connection to a server, and the answer that is being read from it.

    The parser calls the methods that begin with `on`.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: httpx2.Request, body: httpx2.AsyncByteStream) -> httpx2.Response:
        timeouts = request.extensions.get("timeout", {})
        self._read_seconds = timeouts.get("read")
        self._headers: list[tuple[bytes, bytes]] = []
        self._reason, self._parts = b"", list[bytes]()
        self._has_head, self._is_complete = False, False
        self._parser = httptools.HttpResponseParser(self)
        with contextlib.suppress(OSError):  # the answer may say why the server reads no more
            async with within(timeouts.get("write"), httpx2.WriteTimeout):
                await self._write(request)
        while not self._has_head:
            await self._read()
        self._is_complete |= request.method == "HEAD"
        return httpx2.Response(
            self._parser.get_status_code(),
            headers=self._headers,
            stream=body,
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": self._reason},
        )

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._has_head = True

    def on_body(self, part: bytes) -> None:
        self._parts.append(part)

    def on_message_complete(self) -> None:
        self._is_complete = True

    async def _write(self, request: httpx2.Request) -> None:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        head = [b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
        head += [b"%b: %b" % header for header in request.headers.raw]
        self._writer.write(b"\r\n".join([*head, b"", b""]))
        is_chunked = "transfer-encoding" in request.headers
        async for part in request.stream:
            self._writer.write(b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part)
            await self._writer.drain()
        if is_chunked:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def body(self) -> AsyncIterator[bytes]:
        while True:
            parts, self._parts = self._parts, []
            for part in parts:
                yield part
            if self._is_complete:
                return
            await self._read()

    async def _read(self) -> None:
        try:
            async with within(self._read_seconds, httpx2.ReadTimeout):
                found = await self._reader.read(READ_BYTES)
            self._parser.feed_data(found)
        except OSError as error:
            raise httpx2.ReadError(str(error)) from error
        except httptools.HttpParserError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        if not found:
            names = {name.lower() for name, _ in self._headers}
            if not self._has_head or names & {b"content-length", b"transfer-encoding"}:
                raise httpx2.RemoteProtocolError("the server disconnected before the end of its answer")
            self._is_complete = True

    def can_be_used_again(self) -> bool:
        is_kept = all(
            (name.lower(), value.lower()) != (b"connection", b"close") for name, value in self._headers
        )
        return self._is_complete and is_kept and self.is_silent()

    def is_silent(self) -> bool:
        """Nothing waits to be read, not even that the server has closed the line."""
        if self._writer.is_closing() or self._reader.at_eof():
            return False
        poll = select.poll()
        poll.register(self._writer.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    async def close(self) -> None:
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


class Body(httpx2.AsyncByteStream):
    """Who has read it gives the line back to those that nobody uses."""

    def __init__(self, line: Line, idle: list[Line]) -> None:
        self._line, self._idle = line, idle

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._line.body()

    async def aclose(self) -> None:
        if self._line.can_be_used_again() and len(self._idle) < MAX_IDLE:
            self._idle.append(self._line)
        else:
            await self._line.close()


class PlainTransport(httpx2.AsyncBaseTransport):
    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._idle: dict[Origin, list[Line]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        idle = self._idle.setdefault((request.url.scheme, request.url.host, request.url.port), [])
        line = None
        while line is None and idle:
            line = idle.pop()
            if not line.is_silent():
                await line.close()
                line = None
        line = line or await self._new_line(request)
        try:
            return await line.ask(request, Body(line, idle))
        except BaseException:
            await line.close()
            raise

    async def _new_line(self, request: httpx2.Request) -> Line:
        tls = self._tls if request.url.scheme == "https" else None
        port = request.url.port or (443 if tls else 80)
        seconds = request.extensions.get("timeout", {}).get("connect")
        try:
            async with within(seconds, httpx2.ConnectTimeout):
                return Line(*await asyncio.open_connection(request.url.host, port, ssl=tls))
        except OSError as error:  # ssl.SSLError is one
            raise httpx2.ConnectError(str(error)) from error

    async def aclose(self) -> None:
        for line in [line for idle in self._idle.values() for line in idle]:
            await line.close()
        self._idle.clear()


@contextlib.asynccontextmanager
async def within(seconds: float | None, error: type[httpx2.TimeoutException]) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as late:
        raise error(f"not within {seconds} seconds") from late
