"""The event stream over real WebSockets."""

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from postroom import ids
from postroom.assembly import serving
from postroom.events import event_log
from postroom.storage import packing
from postroom.storage.database import Tx
from postroom.web.connection import BoundedConnection
from postroom.web.streams import websocket
from tests.conftest import Server, settings
from tests.mail.keys import signing_key

pytestmark = pytest.mark.sqlite_alone


def mail(number: int, to: str = "hello") -> bytes:
    return (
        f"From: Alice <alice@example.com>\r\nTo: {to}@postroom.localhost\r\nSubject: Mail {number}\r\n"
        f"Message-ID: <{number}@example.com>\r\n\r\nHello {number}.\r\n"
    ).encode()


def open_stream(server: Server, token: str | None = None, query: str = "") -> connect:
    url = f"{server.base_url.replace('http', 'ws')}/v1/ws{query}"
    headers = {"Authorization": f"Bearer {token or server.token}"}
    return patient_connect(url, additional_headers=headers, max_size=None)


def patient_connect(url: str, **options: Any) -> connect:
    """Gives nothing up because the machine is busy."""
    return connect(url, proxy=None, open_timeout=120, ping_interval=None, **options)


async def say(stream: ClientConnection, **message: Any) -> None:
    await stream.send(json.dumps(message))


async def hear_bytes(stream: ClientConnection, seconds: float = 120) -> bytes:
    async with asyncio.timeout(seconds):
        heard = await stream.recv()
    return heard.encode() if isinstance(heard, str) else heard


async def hear(stream: ClientConnection, seconds: float = 120) -> dict[str, Any]:
    heard: dict[str, Any] = json.loads(await hear_bytes(stream, seconds))
    return heard


async def subscribe(stream: ClientConnection, **fields: Any) -> dict[str, Any]:
    await say(stream, type="subscribe", **fields)
    return await hear(stream)


async def hears_nothing(stream: ClientConnection) -> bool:
    await say(stream, type="ping")
    return await hear(stream) == {"type": "pong"}


async def close_code(stream: ClientConnection) -> int | None:
    """Reads to the end and tells how the server closed."""
    async with asyncio.timeout(120):
        try:
            while True:
                await stream.recv()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else None


async def test_an_event_comes_as_the_stored_bytes_after_the_first_subscribe(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    async with open_stream(server) as opened_first, open_stream(server) as stream:
        await subscribe(opened_first)
        await server.deliver(mail(1), "hello")
        first = await hear(opened_first)  # by now the hub has handed it out
        assert await hears_nothing(stream)
        assert await subscribe(stream) == {
            "type": "subscribed",
            "inbox_ids": [],
            "event_types": [],
            "last_event_id": first["event_id"],
        }
        await server.deliver(mail(2), "hello")
        text = await hear_bytes(stream)
    event = json.loads(text)
    assert (event["inbox_id"], event["message"]["subject"]) == (inbox_id, "Mail 2")
    stored = await server.resources.db.read(event_log.find, event["event_id"])
    assert stored is not None
    assert stored.payload == text


async def test_the_upgrade_takes_a_token_in_the_query_and_refuses_a_wrong_key_as_json(
    server: Server,
) -> None:
    for token in ("pr_wrong", "x"):
        with pytest.raises(InvalidStatus) as refused:
            async with open_stream(server, token):
                pass
        assert refused.value.response.status_code == 401
        assert json.loads(refused.value.response.body or b"")["error"] == "unauthorized"
        headers = refused.value.response.headers
        assert headers["X-Request-Id"].startswith("req_")
        assert headers["WWW-Authenticate"] == "Bearer"
    url = server.base_url.replace("http", "ws") + f"/v1/ws?token={server.token}"
    async with patient_connect(url) as stream:
        assert (await subscribe(stream))["type"] == "subscribed"


async def test_subscriptions_add_up_and_filter(server: Server) -> None:
    one, two, three = [await server.new_inbox(name) for name in ("one", "two", "three")]
    async with open_stream(server) as stream:
        await subscribe(stream, inbox_ids=[one])
        echo = await subscribe(stream, inbox_ids=[two], event_types=["message.received"])
        assert echo["inbox_ids"] == sorted([one, two])
        for number, name in enumerate(("three", "two", "one")):
            await server.deliver(mail(number, name), name)
        assert [(await hear(stream))["inbox_id"] for _ in range(2)] == [two, one]
        await say(stream, type="unsubscribe", inbox_ids=[one])
        assert (await hear(stream))["type"] == "unsubscribed"
        await server.deliver(mail(7, "one"), "one")
        await server.deliver(mail(8, "two"), "two")
        assert (await hear(stream))["inbox_id"] == two
        for named, answer in (([three], "unsubscribed"), ([two, "inb_x"], "error"), ([two], "unsubscribed")):
            await say(stream, type="unsubscribe", inbox_ids=named)
            assert (await hear(stream))["type"] == answer


async def test_foreign_and_unknown_ids_are_an_error_and_change_nothing(server: Server) -> None:
    await server.new_inbox("hello")
    async with open_stream(server) as stream, open_stream(server) as other:
        for bad in ("inb_" + "0" * 32, "nonsense", "", "x" * 1000, "\x00"):
            assert (await subscribe(stream, inbox_ids=[bad]))["type"] == "error"
        await subscribe(other)
        await server.deliver(mail(1), "hello")
        await hear(other)  # by now the hub has handed it out
        assert await hears_nothing(stream)


async def test_bad_messages_get_an_error_frame_and_the_stream_lives(server: Server) -> None:
    async with open_stream(server) as stream:
        for bad in (
            "nonsense",
            "[]",
            "{}",
            '{"type":"dance"}',
            '{"type":5}',
            "[" * 20_000,
            '{"type":"subscribe","inbox_ids":7}',
        ):
            await stream.send(bad)
            assert (await hear(stream))["type"] == "error", bad[:30]
        await stream.send(b"\x00\x01")
        assert (await hear(stream))["type"] == "error"
        await say(stream, type="unsubscribe", inbox_ids=["inb_x"])
        assert (await hear(stream))["type"] == "error"
        await subscribe(stream)
        await say(stream, type="unsubscribe", inbox_ids=["inb_x"])
        assert (await hear(stream))["type"] == "error"
        for types in (["x" * 65], ["x"] * 21):
            assert (await subscribe(stream, event_types=types))["type"] == "error"


async def test_a_huge_frame_and_a_flood_are_closed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "WINDOW_SECONDS", 600.0)  # a busy machine may take long for a flood
    async with open_stream(server) as stream:
        await stream.send("x" * 1_000_000)
        assert await close_code(stream) == 1009
    async with open_stream(server) as stream:
        for _ in range(31):
            await say(stream, type="ping")
        assert await close_code(stream) == 4029


async def test_replay_joins_the_live_stream_without_gap_or_duplicate(server: Server) -> None:
    await server.new_inbox("hello")
    await server.deliver(mail(0), "hello")
    first = (await server.next_event())["event_id"]
    for number in range(1, 20):
        await server.deliver(mail(number), "hello")

    async def keep_sending() -> None:
        for number in range(20, 40):
            await server.deliver(mail(number), "hello")

    sender = asyncio.create_task(keep_sending())
    async with open_stream(server) as stream:
        await subscribe(stream, last_event_id=first)
        subjects = [(await hear(stream))["message"]["subject"] for _ in range(39)]
    await sender
    assert subjects == [f"Mail {number}" for number in range(1, 40)]


async def test_an_unknown_last_event_id_is_an_error_and_the_subscription_stands(server: Server) -> None:
    await server.new_inbox("hello")
    async with open_stream(server) as stream:
        assert (await subscribe(stream, last_event_id="evt_" + "0" * 32))["type"] == "subscribed"
        assert (await hear(stream))["type"] == "error"
        await server.deliver(mail(1), "hello")
        assert (await hear(stream))["event"] == "message.received"


async def test_a_scoped_key_hears_its_inbox_alone_until_it_is_revoked(server: Server) -> None:
    own, other = await server.new_inbox("own"), await server.new_inbox("other")
    key = (await server.api.post(f"/v1/inboxes/{own}/api-keys", json={"name": "k"})).json()
    await server.deliver(mail(1, "own"), "own")
    first = (await server.next_event())["event_id"]
    await server.deliver(mail(2, "other"), "other")
    await server.deliver(mail(3, "own"), "own")
    async with open_stream(server, key["token"]) as stream:
        assert (await subscribe(stream, inbox_ids=[other]))["type"] == "error"
        assert (await subscribe(stream, last_event_id=first))["inbox_ids"] == [own]
        assert (await hear(stream))["message"]["subject"] == "Mail 3"
        await server.deliver(mail(4, "other"), "other")
        await server.deliver(mail(5, "own"), "own")
        assert (await hear(stream))["message"]["subject"] == "Mail 5"
        await server.api.delete(f"/v1/inboxes/{own}/api-keys/{key['id']}")
        assert await close_code(stream) == 4001


async def test_the_hundred_and_first_connection_is_closed(server: Server) -> None:
    streams = [await open_stream(server) for _ in range(100)]
    async with open_stream(server) as one_too_many:
        assert await close_code(one_too_many) == 4008
    for stream in streams:
        await stream.close()


async def test_an_event_never_comes_before_its_message_can_be_read(server: Server) -> None:
    await server.new_inbox("hello")
    async with open_stream(server) as stream:
        await subscribe(stream)
        for number in range(10):
            await server.deliver(mail(number), "hello")
            event = await hear(stream)
            answer = await server.api.get(f"/v1/messages/{event['message']['id']}")
            assert answer.status_code == 200


def repeat_last_event(tx: Tx, now: int) -> str:
    """One more event in the log, as a node that dies before it rings would leave it."""
    last = tx.one("select * from events order by position desc limit 1")
    assert last is not None
    event_id = ids.new(ids.EVENT, now)
    tx.run("update accounts set event_position = event_position + 1")
    tx.run(
        "insert into events (id, account_id, position, pod_id, inbox_id, kind, payload, message_id,"
        " created_at, text_files) select :new, account_id, position + 1, pod_id, inbox_id, kind, :payload,"
        " message_id, created_at, text_files from events where id = :id",
        new=event_id,
        payload=packing.unpack_json(bytes(last["payload"])).replace(last["id"].encode(), event_id.encode()),
        id=last["id"],
    )
    return event_id


@pytest.mark.both_databases
async def test_an_event_that_a_replay_finds_before_its_bell_comes_once(server: Server) -> None:
    await server.new_inbox("hello")
    async with open_stream(server) as opened_first, open_stream(server) as stream:
        await subscribe(opened_first)
        await server.deliver(mail(0), "hello")
        first = (await hear(opened_first))["event_id"]
        await server.deliver(mail(1), "hello")
        second = (await hear(opened_first))["event_id"]
        third = await server.resources.db.write(repeat_last_event, server.clock.now())
        await subscribe(stream, last_event_id=first)
        heard = [(await hear(stream))["event_id"] for _ in range(2)]
        assert (await hear(opened_first))["event_id"] == third  # by now the hub knows of it too
        assert heard == [second, third]
        assert await hears_nothing(stream)


async def test_a_replay_that_cannot_go_on_is_closed_so_that_the_client_resumes(tmp_path: Path) -> None:
    async with serving(settings(tmp_path), make_key=signing_key) as postroom:
        url = (
            postroom.resources.config.base_url.replace("http", "ws") + f"/v1/ws?token={postroom.first_token}"
        )
        await postroom.resources.db.write(add_unreadable_events, postroom.resources.now())
        async with patient_connect(url) as stream:
            await subscribe(stream, last_event_id="evt_" + "0" * 31 + "1")
            assert await close_code(stream) == 1011


def add_unreadable_events(tx: Tx, now: int) -> None:
    """SQLite alone lets a text stand where bytes belong: the nearest thing to a broken disk."""
    tx.run("update accounts set event_position = 2")
    for position in (1, 2):
        tx.run(
            "insert into events (id, account_id, position, pod_id, inbox_id, message_id, kind, text_files,"
            " payload, created_at) select :id, id, :position, 'pod_', 'inb_', 'msg_', 'message.received', '',"
            " 'text', :now from accounts",
            id="evt_" + str(position).zfill(32),
            position=position,
            now=now,
        )


async def test_a_stop_closes_with_1001(tmp_path: Path) -> None:
    async with serving(settings(tmp_path), make_key=signing_key) as postroom:
        url = (
            postroom.resources.config.base_url.replace("http", "ws") + f"/v1/ws?token={postroom.first_token}"
        )
        streams = [await patient_connect(url) for _ in range(3)]
        await subscribe(streams[0])
        codes = [asyncio.create_task(close_code(stream)) for stream in streams]
    assert await asyncio.gather(*codes) == [1001, 1001, 1001]


async def test_an_open_stream_keeps_nothing_of_the_connection_that_it_came_by(server: Server) -> None:
    def of_http() -> set[int]:
        gc.collect()
        return {id(each) for each in gc.get_objects() if isinstance(each, BoundedConnection)}

    await server.api.get("/v1/me")
    before = of_http()
    async with open_stream(server) as first, open_stream(server) as second:
        for stream in (first, second):
            assert await hears_nothing(stream)
        assert of_http() <= before


async def test_subscribed_names_the_newest_event_within_reach_of_the_key(server: Server) -> None:
    inbox_id, other = await server.new_inbox("hello"), await server.new_inbox("other")
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={})
    async with open_stream(server) as watcher:
        assert (await subscribe(watcher))["last_event_id"] is None
        await server.deliver(mail(1), "hello")
        own = await hear(watcher)
        await server.deliver(mail(2, "other"), "other")
        foreign = await hear(watcher)
        assert (own["inbox_id"], foreign["inbox_id"]) == (inbox_id, other)
        async with open_stream(server) as stream, open_stream(server, made.json()["token"]) as narrow:
            assert (await subscribe(stream))["last_event_id"] == foreign["event_id"]
            assert (await subscribe(narrow))["last_event_id"] == own["event_id"]


async def test_what_comes_while_subscribed_is_being_told_is_heard_behind_it(server: Server) -> None:
    """The event that it names is the one to go on behind: all that follow come, each once."""
    await server.new_inbox("hello")

    async def join(after_mails: int) -> list[str]:
        async with open_stream(server) as stream:
            told = (await subscribe(stream))["last_event_id"]
            await gone.wait()
            page = await server.api.get("/v1/events", params={"after": told} if told else {})
            wanted = [event["event_id"] for event in page.json()["data"]]
            heard = [(await hear(stream))["event_id"] for _ in wanted]
            assert heard == wanted, after_mails
            assert await hears_nothing(stream)
            return heard

    gone = asyncio.Event()

    async def deliver_many() -> None:
        for number in range(30):
            await server.deliver(mail(number), "hello")
        async with asyncio.timeout(120):
            while len((await server.api.get("/v1/events?limit=100")).json()["data"]) < 30:
                await asyncio.sleep(0.05)
        gone.set()

    delivering = asyncio.create_task(deliver_many())
    joined = []
    for number in range(10):
        joined.append(asyncio.create_task(join(number)))
        await asyncio.sleep(0.02)
    await delivering
    assert await asyncio.gather(*joined)
