"""The stream reconnects by itself and goes on behind the last event, without gap or duplicate."""

from collections.abc import Callable
from contextlib import aclosing
from itertools import islice

import pytest
from websockets.sync.server import ServerConnection

from postroom_client import AsyncClient, Client, errors
from postroom_client.results import Event
from postroom_client.transport.stream import Subscription, address
from tests.client.peers import Script, stream_peer


def event(number: int) -> str:
    return (
        f'{{"event":"message.received","event_id":"evt_{number}","inbox_id":"inb_1","thread_id":"thr_1",'
        f'"message":{{"id":"msg_{number}","from":"a@example.com","subject":"s {number}","unknown":1}}}}'
    )


def sends(*numbers: int, then: Callable[[ServerConnection], None] | None = None) -> Script:
    def script(connection: ServerConnection) -> None:
        for number in numbers:
            connection.send(event(number))
        if then is not None:
            then(connection)

    return script


def closes(code: int) -> Callable[[ServerConnection], None]:
    return lambda connection: connection.close(code, "so it is")


def breaks(connection: ServerConnection) -> None:
    connection.socket.close()


def stays(connection: ServerConnection) -> None:
    for _ in connection:
        pass


def ids(events: list[Event]) -> list[str]:
    return [item.event_id for item in events]


def test_events_come_typed_and_unknown_fields_are_ignored() -> None:
    with stream_peer(sends(1, then=stays)) as peer, Client("pr_1", peer.url) as client:
        first = next(coming := client.stream(inbox_ids=["inb_1"], event_types=["message.received"]))
        coming.close()
    assert first.message is not None
    assert (first.message.sender, first.message.subject, first.inbox_id) == ("a@example.com", "s 1", "inb_1")
    assert peer.subscribed == [
        {"type": "subscribe", "inbox_ids": ["inb_1"], "event_types": ["message.received"]}
    ]
    assert peer.keys == ["Bearer pr_1"]


@pytest.mark.parametrize("end", [closes(1001), closes(1011), closes(4013), breaks, None])
def test_a_broken_connection_is_resumed_behind_the_last_event(
    end: Callable[[ServerConnection], None] | None,
) -> None:
    with stream_peer(sends(1, 2, then=end), sends(3, then=stays)) as peer, Client("pr_1", peer.url) as client:
        coming = client.stream()
        assert ids(list(islice(coming, 3))) == ["evt_1", "evt_2", "evt_3"]
        coming.close()
    assert [message.get("last_event_id") for message in peer.subscribed] == [None, "evt_2"]


async def test_the_awaited_stream_does_the_same() -> None:
    with stream_peer(sends(1, then=breaks), sends(1, 2, then=stays)) as peer:
        async with AsyncClient("pr_1", peer.url) as client, aclosing(client.stream()) as coming:
            seen = [await anext(coming), await anext(coming)]
    assert ids(seen) == ["evt_1", "evt_2"]
    assert peer.subscribed[1]["last_event_id"] == "evt_1"


def test_an_event_that_comes_again_is_given_out_once() -> None:
    with (
        stream_peer(sends(1, 2, then=breaks), sends(2, 1, 3, then=stays)) as peer,
        Client("pr_1", peer.url) as client,
    ):
        coming = client.stream()
        assert ids(list(islice(coming, 3))) == ["evt_1", "evt_2", "evt_3"]
        coming.close()


def test_a_stream_begins_behind_a_given_event() -> None:
    with stream_peer(sends(8, then=stays)) as peer, Client("pr_1", peer.url) as client:
        coming = client.stream(last_event_id="evt_7")
        assert next(coming).event_id == "evt_8"
        coming.close()
    assert peer.subscribed[0]["last_event_id"] == "evt_7"


def test_pauses_are_told() -> None:
    told: list[str] = []
    with (
        stream_peer(sends(then=closes(1001)), sends(1, then=stays), refusals=(503,)) as peer,
        Client("pr_1", peer.url) as client,
    ):
        coming = client.stream(on_pause=lambda reason, seconds: told.append(reason))
        assert next(coming).event_id == "evt_1"
        coming.close()
    assert "503" in told[0]
    assert told[1] == "the server closed the stream"


def test_a_refused_key_ends_the_stream() -> None:
    with (
        stream_peer(refusals=(401,)) as peer,
        Client("pr_1", peer.url) as client,
        pytest.raises(errors.Unauthorized, match="No such key"),
    ):
        next(client.stream())


async def test_a_refused_key_ends_the_awaited_stream() -> None:
    with stream_peer(refusals=(401,)) as peer:
        async with AsyncClient("pr_1", peer.url) as client:
            with pytest.raises(errors.Unauthorized, match="No such key"):
                await anext(client.stream())


def test_a_revoked_key_ends_the_stream() -> None:
    with stream_peer(sends(1, then=closes(4001))) as peer, Client("pr_1", peer.url) as client:
        coming = client.stream()
        assert next(coming).event_id == "evt_1"
        with pytest.raises(errors.Unauthorized, match="revoked"):
            next(coming)


@pytest.mark.parametrize(
    "text", ['{"type":"error","message":"No such inbox."}', "no json", "[" * 100_000, "[]"]
)
def test_an_error_of_the_server_ends_the_stream(text: str) -> None:
    with (
        stream_peer(lambda connection: connection.send(text)) as peer,
        Client("pr_1", peer.url) as client,
        pytest.raises(errors.StreamRefused),
    ):
        next(client.stream())


def test_where_a_stream_began_is_learnt_from_the_server_if_it_says_so() -> None:
    subscription = Subscription()
    assert subscription.take('{"type":"subscribed","last_event_id":"evt_5"}') is None
    assert '"last_event_id":"evt_5"' in subscription.request()


def test_pauses_grow_until_something_is_heard() -> None:
    subscription = Subscription()
    for _ in range(20):
        assert subscription.pause_after(OSError("away")) <= 30
    assert subscription.pause_after(OSError("away")) >= 15
    subscription.take('{"type":"pong"}')
    assert subscription.pause_after(OSError("away")) <= 0.5


def test_only_so_many_events_are_remembered() -> None:
    subscription = Subscription()
    for number in range(5000):
        assert subscription.take(event(number)) is not None
    assert subscription.take(event(4999)) is None
    assert len(subscription._seen) <= 1024


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("http://127.0.0.1:8025", "ws://127.0.0.1:8025/v1/ws"),
        ("https://post.example.com/mail/", "wss://post.example.com/mail/v1/ws"),
    ],
)
def test_the_stream_has_the_address_of_the_server(base_url: str, expected: str) -> None:
    assert address(base_url) == expected
