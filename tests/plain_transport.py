"""HTTP clients for the tests: httpx's own transport takes most of the time of a request."""

import asyncio
import contextlib
import functools
import select
import ssl
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any

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
    return PlainClient(
        base_url=base_url, headers=headers, timeout=timeout, transport=transport, trust_env=False
    )


class PlainClient(httpx2.AsyncClient):
    """Reads an address once: httpx reads the path, then the base and the path."""

    def build_request(self, method: str, url: httpx2.URL | str, **given: Any) -> httpx2.Request:
        if isinstance(url, str) and url.startswith("/") and not url.startswith("//"):
            url = f"{self._origin()}{url}"
        return super().build_request(method, url, **given)

    def _origin(self) -> str:
        return str(self.base_url).rstrip("/")


class Answer:
    """What the parser has found so far; it calls the methods that begin with `on`."""

    def __init__(self) -> None:
        self.headers: list[tuple[bytes, bytes]] = []
        self.reason = b""
        self.parts: list[bytes] = []
        self.has_head = False
        self.is_complete = False

    def on_status(self, reason: bytes) -> None:
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.has_head = True

    def on_body(self, part: bytes) -> None:
        self.parts.append(part)

    def on_message_complete(self) -> None:
        self.is_complete = True

    def keeps_the_line(self) -> bool:
        return self.is_complete and (b"connection", b"close") not in self._lower_headers()

    def ends_with_the_line(self) -> bool:
        names = {name for name, _ in self._lower_headers()}
        return self.has_head and not names & {b"content-length", b"transfer-encoding"}

    def _lower_headers(self) -> list[tuple[bytes, bytes]]:
        return [(name.lower(), value.lower()) for name, value in self.headers]


class Line:
    """A connection to a server, and the answer that is being read from it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._expect_answer(None)

    def _expect_answer(self, read_seconds: float | None) -> None:
        self._read_seconds = read_seconds
        self._answer = Answer()
        self._parser = httptools.HttpResponseParser(self._answer)

    async def ask(self, request: httpx2.Request, body: httpx2.AsyncByteStream) -> httpx2.Response:
        timeouts = request.extensions.get("timeout", {})
        self._expect_answer(timeouts.get("read"))
        with contextlib.suppress(OSError):  # the answer may say why the server reads no more
            async with within(timeouts.get("write"), httpx2.WriteTimeout):
                await self._write(request)
        while not self._answer.has_head:
            await self._read()
        if request.method == "HEAD":
            self._answer.is_complete = True
        return httpx2.Response(
            self._parser.get_status_code(),
            headers=self._answer.headers,
            stream=body,
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": self._answer.reason},
        )

    async def _write(self, request: httpx2.Request) -> None:
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        is_chunked = "transfer-encoding" in request.headers
        self._writer.write(head_of(request))
        async for part in request.stream:
            self._writer.write(b"%x\r\n%b\r\n" % (len(part), part) if is_chunked else part)
            await self._writer.drain()
        if is_chunked:
            self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    async def body(self) -> AsyncIterator[bytes]:
        while True:
            parts, self._answer.parts = self._answer.parts, []
            for part in parts:
                yield part
            if self._answer.is_complete:
                return
            await self._read()

    async def _read(self) -> None:
        try:
            async with within(self._read_seconds, httpx2.ReadTimeout):
                found = await self._reader.read(READ_BYTES)
        except OSError as error:
            raise httpx2.ReadError(str(error)) from error
        try:
            self._parser.feed_data(found)
        except httptools.HttpParserError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        if not found:
            if not self._answer.ends_with_the_line():
                raise httpx2.RemoteProtocolError("the server disconnected before the end of its answer")
            self._answer.is_complete = True

    def can_be_used_again(self) -> bool:
        return self._answer.keeps_the_line() and self.is_silent()

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
    def __init__(self, line: Line, transport: "PlainTransport", origin: Origin) -> None:
        self._line = line
        self._transport = transport
        self._origin = origin

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._line.body()

    async def aclose(self) -> None:
        await self._transport.take_back(self._line, self._origin)


class PlainTransport(httpx2.AsyncBaseTransport):
    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._idle: dict[Origin, list[Line]] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        origin = (request.url.scheme, request.url.host, request.url.port)
        line = await self._idle_line(origin) or await self._new_line(origin, request)
        try:
            return await line.ask(request, Body(line, self, origin))
        except BaseException:
            await line.close()
            raise

    async def _idle_line(self, origin: Origin) -> Line | None:
        idle = self._idle.get(origin, [])
        while idle:
            line = idle.pop()
            if line.is_silent():
                return line
            await line.close()
        return None

    async def _new_line(self, origin: Origin, request: httpx2.Request) -> Line:
        scheme, host, port = origin
        tls = self._tls if scheme == "https" else None
        seconds = request.extensions.get("timeout", {}).get("connect")
        try:
            async with within(seconds, httpx2.ConnectTimeout):
                usual_port = 443 if tls else 80
                return Line(*await asyncio.open_connection(host, port or usual_port, ssl=tls))
        except OSError as error:  # ssl.SSLError is one
            raise httpx2.ConnectError(str(error)) from error

    async def take_back(self, line: Line, origin: Origin) -> None:
        idle = self._idle.setdefault(origin, [])
        if line.can_be_used_again() and len(idle) < MAX_IDLE:
            idle.append(line)
        else:
            await line.close()

    async def aclose(self) -> None:
        for line in [line for idle in self._idle.values() for line in idle]:
            await line.close()
        self._idle.clear()


def head_of(request: httpx2.Request) -> bytes:
    lines = [b"%b %b HTTP/1.1" % (request.method.encode(), request.url.raw_path)]
    lines += [b"%b: %b" % header for header in request.headers.raw]
    return b"\r\n".join([*lines, b"", b""])


@contextlib.asynccontextmanager
async def within(seconds: float | None, error: type[httpx2.TimeoutException]) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as late:
        raise error(f"not within {seconds} seconds") from late
