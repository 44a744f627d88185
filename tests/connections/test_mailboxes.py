"""A mailbox elsewhere, played by Dovecot: its mail comes here once, whatever happens."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from postroom.assembly import serving
from postroom.config import Config
from tests.conftest import Server, api_client, running_server, settings
from tests.connections.dovecot import PASSWORD, Dovecot, running_dovecot
from tests.doubles import FakeClock
from tests.mail.keys import signing_key
from tests.waiting import until

pytestmark = pytest.mark.needs("dovecot")
USER = "agent@example.com"


@pytest.fixture
async def dovecot() -> AsyncIterator[Dovecot]:
    async with running_dovecot() as running:
        yield running


def mail(subject: str, to: str = USER) -> bytes:
    return f"From: ada@example.org\r\nTo: {to}\r\nSubject: {subject}\r\n\r\nHello\r\n".encode()


async def connect(server: Server, dovecot: Dovecot, inbox_id: str, **more: Any) -> dict[str, Any]:
    body = {
        "kind": "imap",
        "host": "127.0.0.1",
        "port": dovecot.port,
        "username": USER,
        "password": PASSWORD,
        "inboxId": inbox_id,
        "since": "2020-01-01",
    }
    answer = await server.api.post("/v1/connections", json=body | more)
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def until_there(server: Server, inbox_id: str, *subjects: str) -> None:
    """Exactly these, each as often as it stands here."""
    async with asyncio.timeout(120):
        while True:
            page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages?limit=100")).json()
            found = sorted(each["subject"] for each in page["data"])
            if len(found) >= len(subjects):
                assert found == sorted(subjects)
                return
            await asyncio.sleep(0.05)


async def until_state(server: Server, connection_id: str, state: str) -> dict[str, Any]:
    async with asyncio.timeout(120):
        while True:
            shown: dict[str, Any] = (await server.api.get(f"/v1/connections/{connection_id}")).json()
            if shown["state"] == state:
                return shown
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def again(config: Config, clock: FakeClock) -> AsyncIterator[Server]:
    """On the data of a server that ran before."""
    async with serving(config, clock, None, signing_key) as postroom:
        token = config.api_key
        async with api_client(postroom.resources.config.base_url, token) as api:
            yield Server(postroom.resources, api, token, clock, postroom.smtp_port)


@pytest.mark.sqlite_alone
async def test_mail_comes_once_also_after_a_restart_and_with_new_numbers(
    database_url: str, tmp_path: Path, clock: FakeClock, dovecot: Dovecot
) -> None:
    await dovecot.put(USER, mail("one"), mail("two"))
    config = settings(tmp_path, DATABASE_URL=database_url, API_KEY="pr_the_key_of_this_test")
    async with running_server(config, clock) as server:
        inbox_id = await server.new_inbox("agent")
        shown = await connect(server, dovecot, inbox_id)
        assert PASSWORD not in str(shown)
        await until_there(server, inbox_id, "one", "two")
        await dovecot.put(USER, mail("three"))  # while it listens
        await until_there(server, inbox_id, "one", "two", "three")
        assert (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()["externalAddress"] == USER
        assert (await server.api.post(f"/v1/connections/{shown['id']}/test")).json()["ok"]
    await dovecot.put(USER, mail("four"))
    dovecot.number_anew(USER)
    clock.turn(40_000)  # the lease of the server before is over
    async with again(config, clock) as server:
        await until_there(server, inbox_id, "one", "two", "three", "four")
        await dovecot.put(USER, mail("five"))
        await until_there(server, inbox_id, "one", "two", "three", "four", "five")
    assert len(dovecot.mails_of(USER)) == 5  # nothing was deleted there


async def test_a_connection_since_no_real_date_is_refused(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    body = {"kind": "imap", "host": "127.0.0.1", "username": USER, "password": PASSWORD, "inboxId": inbox_id}
    for since in ("2026-02-31", "0000-01-01", "yesterday"):
        answer = await server.api.post("/v1/connections", json={**body, "since": since})
        assert (answer.status_code, answer.json()["field"]) == (400, "since"), since


@pytest.mark.sqlite_alone
async def test_mail_is_marked_or_moved_there_and_tags_lead_to_other_inboxes(
    server: Server, dovecot: Dovecot
) -> None:
    inbox_id, other_id = await server.new_inbox("agent"), await server.new_inbox("orders")
    await dovecot.put(USER, mail("old"))
    shown = await connect(
        server, dovecot, inbox_id, since="now", after="move:Done", plusAddresses={"orders": other_id}
    )
    await until_state(server, shown["id"], "live")
    await dovecot.put(USER, mail("new"), mail("order", "agent+Orders@example.com"))
    await until_there(server, inbox_id, "new")
    await until_there(server, other_id, "order")
    await until(lambda: not (len(dovecot.mails_of(USER, ".Done")) < 2 or len(dovecot.mails_of(USER)) > 1))
    assert len(dovecot.mails_of(USER)) == 1  # "old", from before
    other = (await server.api.get(f"/v1/inboxes/{other_id}")).json()
    assert other["externalAddress"] == "agent+orders@example.com"
    path = f"/v1/connections/{shown['id']}"
    assert (await server.api.patch(path, json={"after": "seen"})).json()["after"] == "seen"
    await until_state(server, shown["id"], "live")
    assert (await server.api.patch(path, json={"after": "seen"})).json()["state"] == "live"  # nothing new
    await dovecot.put(USER, mail("newer"))
    await until_there(server, inbox_id, "new", "newer")
    assert (await server.api.delete(path)).status_code == 204
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()["externalAddress"] is None


@pytest.mark.sqlite_alone
async def test_a_wrong_password_is_told(server: Server, dovecot: Dovecot) -> None:
    inbox_id = await server.new_inbox("agent")
    shown = await connect(server, dovecot, inbox_id, password="wrong")
    failing = await until_state(server, shown["id"], "failing")
    assert "app password" in failing["lastError"]
    tried = (await server.api.post(f"/v1/connections/{shown['id']}/test")).json()
    assert (tried["ok"], "app password" in tried["error"]) == (False, True)
    path = f"/v1/connections/{shown['id']}"
    await server.api.patch(path, json={"password": PASSWORD})
    await until_state(server, shown["id"], "live")
