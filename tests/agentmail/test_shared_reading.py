"""Streams of /v0: those of one account share what is read for them, and each hears what it asked for."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest
from agentmail import AsyncAgentMail
from websockets.asyncio.client import connect

from postroom.events import event_log
from postroom.web.agentmail.events import render
from postroom.web.streams import websocket
from tests.agentmail.test_mail import api as api  # the fixture
from tests.agentmail.test_mail import mail, new, received
from tests.agentmail.test_permissions import key_with
from tests.api.raw_websocket import open_raw
from tests.api.test_stream import hear, hear_bytes, open_stream, repeat_last_event, subscribe
from tests.conftest import Server

LARGE_EVENTS, LARGE_LINES = 20, 24_000


class Reads:
    """What was read for streams: the ids of events, as often as each was."""

    def __init__(self) -> None:
        self.of_log: list[str] = []
        self.retold: list[str] = []


@pytest.fixture
def reads(server: Server, monkeypatch: pytest.MonkeyPatch) -> Reads:
    noted = Reads()
    db, read = server.resources.db, server.resources.db.read

    async def read_and_note(fn: Callable[..., Any], *args: Any) -> Any:
        found = await read(fn, *args)
        if fn is event_log.list_after:
            noted.of_log += [event.id for event in found.events]
        elif fn is render:
            noted.retold.append(args[0].id)
        return found

    monkeypatch.setattr(db, "read", read_and_note)
    return noted


def open_other(server: Server, token: str = "") -> connect:
    url = f"{server.base_url.replace('http', 'ws')}/v0"
    headers = {"Authorization": f"Bearer {token or server.token}"}
    return connect(url, additional_headers=headers, max_size=None, proxy=None, open_timeout=120)


@pytest.mark.sqlite_alone
async def test_all_who_listen_to_an_account_share_one_read_of_the_log(server: Server, reads: Reads) -> None:
    await server.new_inbox("support")
    async with AsyncExitStack() as opened:
        own = await opened.enter_async_context(open_stream(server))
        others = [await opened.enter_async_context(open_other(server)) for _ in range(3)]
        for each in (own, *others):
            assert (await subscribe(each))["type"] == "subscribed"
        await server.deliver(mail("Here"), "support")
        told = (await hear(own))["event_id"]
        heard = [await hear_bytes(other) for other in others]
        assert len(set(heard)) == 1
        assert told.encode() in heard[0]
    assert (reads.of_log, reads.retold) == ([told], [told])


@pytest.mark.sqlite_alone
async def test_each_hears_what_it_wants_and_may_see(server: Server, api: AsyncAgentMail) -> None:
    inbox = (await new(api, username="support")).inbox_id
    other = (await new(api, username="other")).inbox_id
    few = (await key_with(api, message_read=True)).api_key
    async with open_other(server) as all_of_it, open_other(server, few) as seen, open_other(server) as one:
        for each in (all_of_it, seen):
            await subscribe(each, inbox_ids=[inbox])
        await subscribe(one, inbox_ids=[inbox], event_types=["message.delivered"])
        await received(server, mail("Elsewhere"), name="other")
        await received(server, mail("Thrown", message_id="<thrown@there.example>"))
        first = await hear(all_of_it)
        assert first == await hear(seen)
        assert (first["event_type"], first["message"]["subject"]) == ("message.received", "Thrown")
        await api.inboxes.messages.update(inbox, "<thrown@there.example>", add_labels=["trash"])
        again = (await repeat_events(server, 1))[0]
        assert (await hear(all_of_it))["event_id"] == again
        await api.inboxes.messages.send(inbox, to=other, subject="Out", text="x")
        sent = [await hear(all_of_it), await hear(all_of_it)]
        assert [event["event_type"] for event in sent] == ["message.sent", "message.delivered"]
        assert [await hear(seen), await hear(seen)] == sent
        assert await hear(one) == sent[1]


@pytest.mark.sqlite_alone
async def test_the_last_subscription_counts(server: Server, api: AsyncAgentMail) -> None:
    first, second = [(await new(api, username=name)).inbox_id for name in ("support", "other")]
    async with open_other(server) as stream:
        await subscribe(stream, inbox_ids=[first])
        await received(server, mail("One"))
        assert (await hear(stream))["message"]["subject"] == "One"
        await subscribe(stream, inbox_ids=[second])
        await received(server, mail("Two"))
        await received(server, mail("Three"), name="other")
        assert (await hear(stream))["message"]["subject"] == "Three"


@pytest.mark.sqlite_alone
async def test_who_falls_behind_reads_by_itself_and_hears_each_event_once(
    server: Server, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "STALL_SECONDS", 600.0)
    await server.new_inbox("support")
    slow = await open_raw(server.base_url, server.token, "/v0")
    await slow.say(type="subscribe")
    assert (await slow.hear())["type"] == "subscribed"
    async with open_other(server) as quick:
        await subscribe(quick)
        await server.deliver(mail("Long") + b"A line of a long letter.\r\n" * LARGE_LINES, "support")
        first = (await hear(quick))["event_id"]
        expected = [first, *await repeat_events(server, LARGE_EVENTS)]
        assert [(await hear(quick))["event_id"] for _ in expected[1:]] == expected[1:]
        assert [(await slow.hear())["event_id"] for _ in expected] == expected
        assert reads.retold.count(expected[-1]) == 2
        await server.deliver(mail("Short"), "support")
        last = (await slow.hear())["event_id"]
        assert (await hear(quick))["event_id"] == last
    slow.writer.close()
    assert reads.retold.count(last) == 1  # it has caught up


async def repeat_events(server: Server, count: int) -> list[str]:
    """The last event once more, so often."""
    db, now = server.resources.db, server.clock.now()
    repeated = [await db.write(repeat_last_event, now) for _ in range(count)]
    db.ring(event_log.bell((await server.api.get("/v1/me")).json()["accountId"]))
    return repeated
