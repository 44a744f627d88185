"""A hostile client on a raw socket: bounded, refused in the error shape, and never in the way of others."""

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import cast

import pytest
import pytest_asyncio
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from postroom.assembly import Postroom, serving
from postroom.errors import RequestTimeout
from postroom.web.connection import WAITING_REQUESTS, BoundedConnection
from postroom.web.requests.request_body import read_bytes
from postroom.web.server import HttpServer
from tests.conftest import settings
from tests.mail.keys import signing_key
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

KEY = "pr_0123456789abcdef"
HEAD = f"Host: here\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"


class Line(asyncio.Protocol):
    """A raw connection. It keeps all that came also when the end was a reset."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.is_cut = False
        self.news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_cut = True
        self.news.set()

    async def say(self, *parts: str | bytes) -> None:
        for part in parts:
            self.transport.write(part.encode() if isinstance(part, str) else part)
            while self.transport.get_write_buffer_size() and not self.is_cut:
                await asyncio.sleep(0.001)

    async def until(self, has_come: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not has_come() and not self.is_cut:
                self.news.clear()
                await self.news.wait()

    async def status(self) -> int:
        """Takes one answer and returns its status; the body stays in `self.body`."""
        await self.until(lambda: b"\r\n\r\n" in self.received)
        head, _, _ = bytes(self.received).partition(b"\r\n\r\n")
        self.head = head.decode().lower()
        end = len(head) + 4 + int(self.head.split("content-length: ")[1].split("\r\n")[0])
        await self.until(lambda: len(self.received) >= end)
        self.body = json.loads(self.received[len(head) + 4 : end] or b"null")
        del self.received[:end]
        return int(self.head.split()[1])

    async def rest(self) -> bytes:
        await self.until(lambda: False)
        return bytes(self.received)


@contextlib.asynccontextmanager
async def line_to(port: int) -> AsyncIterator[Line]:
    transport, line = await asyncio.get_running_loop().create_connection(Line, "127.0.0.1", port)
    try:
        yield line
    finally:
        transport.abort()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def postroom(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Postroom]:
    config = settings(tmp_path_factory.mktemp("data"), API_KEY=KEY)
    async with serving(config, make_key=signing_key) as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def line(postroom: Postroom) -> AsyncIterator[Line]:
    async with line_to(postroom.resources.config.http.port) as opened:
        yield opened


BROKEN = {
    "two lengths": f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}",
    "a length and chunks": f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}Content-Length: 2\r\n"
    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a negative length": f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}Content-Length: -1\r\n\r\n",
    "a broken chunk": f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a space before the colon": "GET /health HTTP/1.1\r\nHost : here\r\n\r\n",
    "a folded header": "GET /health HTTP/1.1\r\nHost: here\r\n folded\r\n\r\n",
    "a NUL": "GET /health HTTP/1.1\r\nHost: he\0re\r\n\r\n",
    "bytes above ASCII in the path": "GET /h\u00e9alth HTTP/1.1\r\nHost: here\r\n\r\n",
    "a proxy's method": "CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n",
    "not HTTP at all": "\x16\x03\x01\x02",
}


@pytest.mark.parametrize("request_text", BROKEN.values(), ids=BROKEN.keys())
async def test_broken_http_is_refused_in_the_error_shape(line: Line, request_text: str) -> None:
    await line.say(request_text)
    assert await line.status() == 400
    assert set(line.body) == {"error", "message"}
    assert "x-request-id: req_" in line.head
    assert await line.rest() == b""


STARTS = {
    "one endless header": ("GET /health HTTP/1.1\r\nX: ", "x" * 6),
    "endless headers": ("GET /health HTTP/1.1\r\n", "X: y\r\n"),
    "an endless path": ("GET /", "x" * 6),
}


@pytest.mark.parametrize(("start", "piece"), STARTS.values(), ids=STARTS.keys())
async def test_a_head_that_does_not_end_is_cut_off(line: Line, start: str, piece: str) -> None:
    await line.say(start, piece * 5_000, piece * 5_000, piece * 1_000)
    assert (await line.status(), line.body["error"]) == (431, "headers_too_large")
    assert await line.rest() == b""


async def test_a_head_that_is_too_large_is_refused_however_it_arrives(line: Line) -> None:
    await line.say(f"GET /health HTTP/1.1\r\nX: {'x' * 65_536}\r\n\r\n")
    assert await line.status() == 431


async def test_trailers_that_do_not_end_are_cut_off(line: Line) -> None:
    await line.say(f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n")
    while not line.is_cut:
        await line.say("X: y\r\n" * 10_000)


async def test_a_large_body_beside_a_small_head_is_not_counted_as_head(line: Line) -> None:
    body = json.dumps({"mailboxName": "large", "padding": "x" * 500_000})
    post = f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n{body}"
    await line.say(post + post)
    assert [await line.status(), await line.status()] == [201, 409]


async def test_a_request_that_offers_http2_keeps_its_body(line: Line) -> None:
    body = '{"mailboxName": "offered"}'
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    head = f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}{offer}Content-Length: {len(body)}\r\n\r\n"
    await line.say(head + body)
    assert await line.status() == 201
    await line.say(head, body[:5], body[5:])
    assert await line.status() == 409


async def test_what_came_whole_before_a_fault_is_still_answered(line: Line) -> None:
    body = '{"mailboxName": "whole"}'
    await line.say(
        f"POST /v1/inboxes HTTP/1.1\r\n{HEAD}Content-Length: {len(body)}\r\n\r\n{body}nonsense\r\n\r\n"
    )
    assert await line.status() == 201
    assert "connection: close" in line.head
    assert await line.rest() == b""


async def test_requests_may_wait_in_line_but_not_without_end(line: Line) -> None:
    await line.say("GET /health HTTP/1.1\r\nHost: here\r\n\r\n" * 5_000)
    answers = (await line.rest()).count(b"HTTP/1.1 200 OK")
    assert 1 <= answers <= WAITING_REQUESTS + 1


class HastyConnection(BoundedConnection):
    idle_seconds = 0.05


async def large_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"x" * 50_000_000)(scope, receive, send)


async def small_answer(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"{}")(scope, receive, send)


@contextlib.asynccontextmanager
async def line_to_answers(
    connection: type[BoundedConnection], app: ASGIApp = large_answer
) -> AsyncIterator[Line]:
    listener = socket.create_server(("127.0.0.1", 0))
    http = HttpServer(app, listener, connection)
    await http.start()
    async with line_to(listener.getsockname()[1]) as opened:
        yield opened
    await http.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def hasty_line() -> AsyncIterator[Line]:
    async with line_to_answers(HastyConnection) as opened:
        yield opened


@pytest.mark.parametrize("said", ["", "GET / HT", "GET / HTTP/1.1\r\nHost: h"])
async def test_a_client_that_does_not_finish_its_head_is_hung_up_on(hasty_line: Line, said: str) -> None:
    await hasty_line.say(said)
    assert await hasty_line.rest() == b""


class WatchedConnection(BoundedConnection):
    """Its patience ends when a test says so."""

    idle_seconds = 3600.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        WATCHED.append(self)

    @property
    def unsent_bytes(self) -> int:
        return self.transport.get_write_buffer_size()


WATCHED: list[WatchedConnection] = []


async def test_a_client_that_reads_on_gets_its_whole_answer() -> None:
    async with line_to_answers(WatchedConnection) as line:
        await line.say("GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        await line.until(lambda: len(line.received) > 1_000_000)
        looks = 0
        while unsent_bytes := WATCHED[-1].unsent_bytes:
            WATCHED[-1]._hang_up()
            looks += 1
            async with asyncio.timeout(120):
                while WATCHED[-1].unsent_bytes == unsent_bytes:
                    await asyncio.sleep(0)
        await line.until(lambda: len(line.received) > 50_000_000)
        assert not line.is_cut
        assert looks > 2


async def test_one_timer_serves_many_requests_and_hangs_up_in_a_later_head() -> None:
    async with line_to_answers(WatchedConnection, small_answer) as line:
        await line.say("GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        assert await line.status() == 200
        timer = WATCHED[-1]._timer
        assert timer is not None
        await line.say("GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        assert await line.status() == 200
        assert WATCHED[-1]._timer is timer
        await line.say("GET / HT")
        await until(lambda: WATCHED[-1]._head_bytes)
        WATCHED[-1]._check_timer()  # too early
        assert not WATCHED[-1].transport.is_closing()
        WATCHED[-1]._waits_until = 0.0
        WATCHED[-1]._check_timer()
        assert await line.rest() == b""


@pytest.mark.parametrize("requests", [1, 3])
async def test_a_client_that_takes_nothing_is_hung_up_on(hasty_line: Line, requests: int) -> None:
    hasty_line.transport.pause_reading()
    await hasty_line.say("GET / HTTP/1.1\r\nHost: here\r\n\r\n" * requests)
    while not hasty_line.is_cut:  # what we do not read stays unread
        await hasty_line.say("\r\n")
        await asyncio.sleep(0.01)
    assert len(hasty_line.received) < 50_000_000


async def test_a_body_that_does_not_arrive_is_not_waited_for() -> None:
    async def nothing_comes() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    request = Request({"type": "http", "headers": []}, nothing_comes)
    with pytest.raises(RequestTimeout):
        await read_bytes(request, 100, seconds=0.01)
