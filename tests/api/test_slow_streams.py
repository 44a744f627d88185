"""Streams that do not read what they are sent: they are let go in time, lose nothing, and delay nobody."""

import asyncio
import json

import pytest

from postroom.events import event_log
from postroom.limits import STREAMS_OF_AN_ACCOUNT
from postroom.web.streams import websocket
from postroom.web.streams.websocket import StreamProtocol
from tests.api.raw_websocket import CLOSE, PING, TEXT, RawWebSocket, encode, open_raw
from tests.api.test_stream import hear, mail, open_stream, repeat_last_event, subscribe
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone

LARGE_EVENTS = 40
LARGE_BODY_BYTES = 600_000
MORE_THAN_BUFFERED = 15  # of them, by a connection in kernel and server: each has at most a few megabytes
TOO_SLOW = 4013


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is cut off because the machine is busy; a test that waits for it says how long it takes."""
    monkeypatch.setattr(websocket, "STALL_SECONDS", 600.0)
    monkeypatch.setattr(websocket, "CLOSE_SECONDS", 600.0)


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set when the server has said goodbye to somebody."""
    said = asyncio.Event()
    close_now = StreamProtocol.close_now

    def close_and_tell(protocol: StreamProtocol, code: int, reason: str) -> None:
        close_now(protocol, code, reason)
        said.set()

    monkeypatch.setattr(StreamProtocol, "close_now", close_and_tell)
    return said


async def open_slow(server: Server, **fields: str) -> RawWebSocket:
    """Subscribed, and from then on it reads only when a test does."""
    slow = await open_raw(server.base_url, server.token)
    await slow.say(type="subscribe", **fields)
    assert (await slow.hear())["type"] == "subscribed"
    return slow


async def add_large_events(server: Server) -> list[str]:
    """Far more than a connection buffers, all at once."""
    large = mail(1) + b"A line of a long letter.\r\n" * (LARGE_BODY_BYTES // 26)
    await server.deliver(large, "hello")
    first = (await server.next_event())["event_id"]
    db, now = server.resources.db, server.clock.now()
    others = [await db.write(repeat_last_event, now) for _ in range(LARGE_EVENTS)]
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    db.ring(event_log.bell(account_id))
    return [first, *others]


async def read_events(slow: RawWebSocket, most: int = 10 * LARGE_EVENTS) -> tuple[list[str], int | None]:
    """The events that came, and the close code if it came."""
    ids: list[str] = []
    while len(ids) < most and (frame := await slow.receive()) is not None:
        if frame.opcode == CLOSE:
            slow.writer.close()
            return ids, frame.close_code
        if frame.opcode == TEXT:
            ids.append(json.loads(frame.payload)["event_id"])
    return ids, None


async def test_a_consumer_that_reads_nothing_is_closed_delays_nobody_and_resumes(
    server: Server, monkeypatch: pytest.MonkeyPatch, closed: asyncio.Event
) -> None:
    await server.new_inbox("hello")
    slow = await open_slow(server)
    async with open_stream(server) as quick:
        await subscribe(quick)
        expected = await add_large_events(server)
        assert [(await hear(quick))["event_id"] for _ in expected] == expected
    monkeypatch.setattr(websocket, "STALL_SECONDS", 0.2)  # from when it stops again, and nobody else is there
    seen, code = await read_events(slow, MORE_THAN_BUFFERED)
    await asyncio.wait_for(closed.wait(), 120)
    if code is None:
        more, code = await read_events(slow)
        seen += more
    assert code == TOO_SLOW
    assert seen == expected[: len(seen)]
    assert len(seen) < len(expected)
    monkeypatch.setattr(websocket, "STALL_SECONDS", 600.0)
    again = await open_slow(server, last_event_id=seen[-1])
    rest = [(await again.hear())["event_id"] for _ in range(len(expected) - len(seen))]
    assert seen + rest == expected
    again.writer.close()


async def test_a_replay_to_a_slow_reader_waits_for_it_and_buffers_little(server: Server) -> None:
    await server.new_inbox("hello")
    expected = await add_large_events(server)
    slow = await open_slow(server, last_event_id=expected[0])
    async with open_stream(server) as quick:
        await subscribe(quick, last_event_id=expected[0])
        assert [(await hear(quick))["event_id"] for _ in expected[1:]] == expected[1:]
    assert [(await slow.hear())["event_id"] for _ in expected[1:]] == expected[1:]
    slow.writer.close()


async def test_pings_whose_answers_nobody_reads_are_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "CLOSE_SECONDS", 0.2)
    slow = await open_slow(server)
    flood = encode(PING, b"x" * 125) * 1000

    async def send_for_ever() -> None:
        while True:
            slow.writer.write(flood)
            await slow.writer.drain()

    sending = asyncio.create_task(send_for_ever())
    async with asyncio.timeout(120):
        with pytest.raises(ConnectionError):
            await sending


async def test_a_goodbye_amid_much_unread_is_answered_and_frees_the_place(server: Server) -> None:
    await server.new_inbox("hello")
    slow = await open_slow(server)
    others = [await open_stream(server) for _ in range(STREAMS_OF_AN_ACCOUNT - 1)]
    await add_large_events(server)
    await slow.send(encode(CLOSE, b"\x03\xe8"))
    assert (await read_events(slow))[1] == 1000
    async with open_stream(server) as stream:
        assert (await subscribe(stream))["type"] == "subscribed"
    for other in others:
        other.transport.abort()
