"""The stream against the real server, through a restart of it."""

import signal
from contextlib import aclosing, closing
from itertools import islice
from pathlib import Path

import pytest

from postroom_client import AsyncClient, errors
from postroom_client.results import Inbox
from tests.client.live import LiveServer, Ports, running_server
from tests.conftest import Server

pytestmark = pytest.mark.sqlite_alone  # a client speaks to no database


def mail(number: int) -> bytes:
    return f"From: a@example.com\r\nMessage-ID: <{number}@x>\r\nSubject: {number}\r\n\r\nhi\r\n".encode()


async def test_events_come_as_they_happen(server: Server) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        inbox = await client.create_inbox("heard")
        await client.create_inbox("ignored")
        await server.deliver(mail(0), "heard")
        first = (await client.list_events(wait=60)).data[0].event_id
        async with aclosing(client.stream(inbox_ids=[inbox.id], last_event_id=first)) as coming:
            await server.deliver(mail(1), "heard")
            await server.deliver(mail(2), "ignored")
            await server.deliver(mail(3), "heard")
            subjects = [(await anext(coming)).message for _ in range(2)]
    assert [message.subject for message in subjects if message] == ["1", "3"]


async def test_a_revoked_key_ends_the_stream(server: Server) -> None:
    async with AsyncClient(server.token, server.base_url) as client:
        inbox = await client.create_inbox("scoped")
        await server.deliver(mail(0), "scoped")
        first = (await client.list_events(wait=60)).data[0].event_id
        await server.deliver(mail(1), "scoped")
        key = await client.create_api_key(inbox.id, "stream")
        narrow = AsyncClient(key.token, server.base_url)
        async with narrow, aclosing(narrow.stream(last_event_id=first)) as coming:
            assert (await anext(coming)).inbox_id == inbox.id
            await client.delete_api_key(inbox.id, key.id)
            with pytest.raises(errors.Unauthorized, match="revoked"):
                await anext(coming)


def test_an_unknown_place_to_begin_is_refused(live: LiveServer) -> None:
    with live.client() as client, pytest.raises(errors.StreamRefused, match="unknown"):
        next(client.stream(last_event_id="evt_never"))


def test_a_killed_server_costs_no_event_and_doubles_none(tmp_path: Path) -> None:
    ports = Ports.free()
    with running_server(tmp_path, ports) as server, server.client() as client:
        inbox = client.create_inbox("agent")
        server.deliver(mail(0), inbox.address)
        first = client.list_events(wait=60).data[0].event_id
    with server.client() as client, closing(client.stream(last_event_id=first)) as coming:
        for number in (1, 3, 5):
            with running_server(tmp_path, ports, ending=signal.SIGKILL) as server:
                server.deliver(mail(number), inbox.address)
                server.deliver(mail(number + 1), inbox.address)
                heard = [event.message for event in islice(coming, 2)]
            assert [message.subject for message in heard if message] == [str(number), str(number + 1)]


def test_a_stream_of_an_inbox_hears_no_other(live: LiveServer, inbox: Inbox) -> None:
    live.deliver(mail(0), inbox.address)
    live.arrived(inbox)
    with live.client() as client:
        first = client.list_events(inbox_ids=[inbox.id]).data[0].event_id
        live.deliver(mail(1), inbox.address)
        with closing(client.stream(inbox_ids=[inbox.id], last_event_id=first)) as coming:
            assert next(coming).inbox_id == inbox.id
