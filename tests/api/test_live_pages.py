"""What an open page hears at /app/live: all that happened since it was made, from the reader of the log."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from postroom.accounts.scope import Scope
from postroom.accounts.sessions import Session
from postroom.errors import Unavailable
from postroom.events import event_log
from postroom.resources import Resources
from postroom.storage.database import Database
from postroom.web.dashboard.forms import COOKIE
from postroom.web.dashboard.live import OpenPage, admit, join
from postroom.web.streams.hub import Hubs
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.raw_mails import raw_mail

pytestmark = pytest.mark.sqlite_alone


@contextlib.asynccontextmanager
async def open_page(
    server: Server, client: httpx2.AsyncClient, after: str = ""
) -> AsyncIterator[ClientConnection]:
    url = f"{server.base_url.replace('http', 'ws')}/app/live?after={after}"
    headers = {"Cookie": f"{COOKIE}={client.cookies[COOKIE]}", "Origin": server.base_url}
    async with connect(url, additional_headers=headers, proxy=None, open_timeout=120) as page:
        yield page


async def hear(page: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(120):
        heard: dict[str, Any] = json.loads(await page.recv())
    return heard


async def test_a_page_hears_of_new_mail_where_it_is_and_what_kind(server: Server) -> None:
    inbox = await server.new_inbox("bob")
    async with signed_in(server) as client, open_page(server, client) as page:
        await server.deliver(raw_mail(subject="New"), "bob")
        news = await hear(page)
        event = await server.next_event()
        assert news == {
            "last": event["event_id"],
            "counts": {"message.received": 1},
            "places": sorted([inbox, event["thread_id"]]),
        }


async def test_a_session_that_may_not_read_hears_nothing(server: Server) -> None:
    body = {"name": "writer", "permissions": ["send"]}
    key = (await server.api.post("/v1/api-keys", json=body)).json()["token"]
    async with signed_in(server, key=key) as client:
        with pytest.raises(InvalidStatus) as refused:
            async with open_page(server, client):
                pass
    assert refused.value.response.status_code == 403


async def test_a_long_query_of_a_page_or_a_stream_is_refused_unread(server: Server) -> None:
    async with signed_in(server) as client:
        assert (await client.get(f"/app/search?q={'%25' * 700}")).status_code == 431
        assert (await client.get(f"/app/search?q={'%25' * 100}")).status_code == 200
        with pytest.raises(InvalidStatus) as refused:
            async with open_page(server, client, after="%25" * 700):
                pass
    assert refused.value.response.status_code == 431


async def test_a_page_that_comes_back_hears_what_it_missed(server: Server) -> None:
    await server.new_inbox("bob")
    await server.deliver(raw_mail(subject="Known"), "bob")
    known = (await server.next_event())["event_id"]
    await server.deliver(raw_mail(subject="Missed", message_id="<2@x>"), "bob")
    missed = (await server.next_event(known))["event_id"]
    async with signed_in(server) as client, open_page(server, client, known) as page:
        assert (await hear(page))["last"] == missed


async def test_a_page_whose_last_event_is_not_in_the_log_is_told_of_many(server: Server) -> None:
    async with signed_in(server) as client, open_page(server, client, "evt_gone") as page:
        assert await hear(page) == {"last": "", "counts": {}, "places": ["many"]}


async def test_a_page_closes_when_its_session_ends(server: Server) -> None:
    async with signed_in(server) as client, open_page(server, client) as page:
        await client.post("/app/sign-out")
        async with asyncio.timeout(120):
            with pytest.raises(ConnectionClosed) as closed:
                await page.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4001


class FailingFirst:
    """A database whose first read of a kind fails, as one does that is being restarted."""

    def __init__(self, db: Database, failing: Callable[..., Any]) -> None:
        self._db = db
        self._failing: Callable[..., Any] | None = failing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    async def read(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if fn is self._failing:
            self._failing = None
            raise Unavailable("The database does not answer. Try again.")
        return await self._db.read(fn, *args, **kwargs)


async def hearing(
    resources: Resources, session: Session, known: int, meanwhile: Callable[[], Any]
) -> OpenPage:
    """A page that is admitted, and joins after something happened."""
    hubs, page = Hubs(resources), OpenPage(session, Scope(session.account_id))
    hub = hubs.add(session.account_id, page)
    await meanwhile()
    try:
        async with asyncio.timeout(120):
            await join(hub, page, known)
            await page.news.wait()
    finally:
        hubs.remove(hub, page)
    return page


async def new_session(server: Server) -> tuple[Session, int]:
    async with signed_in(server) as client:
        token = client.cookies[COOKIE] or ""
        page, known = await server.resources.db.read(admit, token, "", server.clock.now())
    assert known is not None
    return page.session, known


async def test_mail_between_the_admission_of_a_page_and_its_first_read_is_told(server: Server) -> None:
    await server.new_inbox("bob")
    session, known = await new_session(server)

    async def deliver() -> None:
        await server.deliver(raw_mail(subject="In between"), "bob")
        await server.next_event()

    page = await hearing(server.resources, session, known, deliver)
    assert json.loads(page.take_changes())["counts"] == {"message.received": 1}


async def test_a_first_read_that_fails_leaves_no_page_deaf(server: Server) -> None:
    await server.new_inbox("bob")
    session, known = await new_session(server)
    failing: Any = FailingFirst(server.resources.db, event_log.last_position)
    resources = replace(server.resources, db=failing)

    async def deliver() -> None:
        await server.deliver(raw_mail(subject="After the fault"), "bob")

    page = await hearing(resources, session, known, deliver)
    assert json.loads(page.take_changes())["counts"] == {"message.received": 1}
