"""Accounts in the operator's hands: names, storage, retention, and an end that leaves nothing behind."""

import asyncio
import smtplib
from typing import Any

import httpx2
import pytest

from postroom.accounts import accounts, keys
from postroom.accounts.accounts import Account
from postroom.clock import DAY
from postroom.errors import FirstAccountStays, NameTaken
from postroom.mailbox import raw_mails
from postroom.mailbox.search import index_upkeep
from postroom.resources import Tx
from postroom.upkeep import account_removal, upkeep_loop
from tests.api.test_deletion import mail
from tests.api.test_pods import told
from tests.conftest import Server

LARGE = b"x" * raw_mails.IN_ROW_BYTES
TOKEN = "pr_second-account-0123456789"


async def second_account(server: Server) -> Account:
    def add(tx: Tx) -> Account:
        account = accounts.add(tx, "second", "business", server.clock.now())
        keys.add(tx, account.id, None, "key", TOKEN, server.clock.now())
        return account

    return await server.resources.db.write(add)


def rcpt(port: int, name: str) -> tuple[int, bytes]:
    """The answer to a recipient."""
    with smtplib.SMTP("127.0.0.1", port, timeout=120) as smtp:
        smtp.ehlo()
        smtp.mail("alice@example.com")
        return smtp.rcpt(f"{name}@postroom.localhost")


async def last_reply(api: httpx2.AsyncClient, message_id: str) -> str:
    """What the first recipient's server said, once it has said something."""
    async with asyncio.timeout(120):
        while True:
            (recipient,) = (await api.get(f"/v1/messages/{message_id}")).json()["recipients"]
            if recipient["lastReply"]:
                return str(recipient["lastReply"])
            await asyncio.sleep(0.02)


def owned_tables(tx: Tx, engine: str) -> list[str]:
    """Every table with a column that names an account."""
    if engine == "sqlite":
        tables = [row["name"] for row in tx.all("select name from sqlite_master where type = 'table'")]
        return [
            table
            for table in tables
            if "account_id"
            in {row["name"] for row in tx.all(f"select name from pragma_table_info('{table}')")}
        ]
    found = tx.all(
        "select table_name from information_schema.columns"
        " where column_name = 'account_id' and table_schema = current_schema()"
    )
    return [row["table_name"] for row in found]


async def left_of(server: Server, account_id: str) -> dict[str, int]:
    engine = "postgres" if server.resources.config.database_url else "sqlite"

    def count(tx: Tx) -> dict[str, int]:
        tables = owned_tables(tx, engine)
        assert len(tables) > 15
        rows = {
            table: len(tx.all(f"select 1 as one from {table} where account_id = :id", id=account_id))
            for table in tables
        }
        rows["accounts"] = len(tx.all("select 1 as one from accounts where id = :id", id=account_id))
        rows["messages"] = len(tx.all("select 1 as one from messages"))
        rows["keys of DKIM"] = len(tx.all("select 1 as one from dkim_keys where owner = :id", id=account_id))
        return {table: number for table, number in rows.items() if number}

    return await server.resources.db.read(count)


async def test_a_deleted_account_is_closed_at_once_and_leaves_nothing(server: Server) -> None:
    account = await second_account(server)
    async with server.client(TOKEN) as api:
        inbox = (await api.post("/v1/inboxes", json={"mailboxName": "gone"})).json()
        await api.put("/v1/webhook", json={"url": "http://127.0.0.1:9/hook"})
        await api.post("/v1/pods", json={"clientId": "tenant"})
        await api.post("/v1/domains", json={"domain": "own.example"})
        await api.post("/v1/suppressions", json={"address": "no@example.com"})
        await api.put("/v1/policy/mode", json={"mode": "none", "direction": "inbound"})
        await api.put("/v1/pause")
        await server.deliver(mail(1, body=LARGE), "gone")
        await server.deliver(mail(2), "gone")
        body = {"to": "far@example.org", "subject": "s", "body": "b"}
        sent = await api.post(
            f"/v1/inboxes/{inbox['id']}/send", json=body, headers={"Idempotency-Key": "one"}
        )
        assert sent.status_code == 200, sent.text
        before = await left_of(server, account.id)
        assert {"events", "pauses", "domains", "suppressions", "pods", "keys"} <= before.keys()

        await server.resources.db.write(account_removal.close, account, server.clock.now())
        assert (await api.get("/v1/me")).status_code == 401
    assert (await server.resources.db.read(accounts.find, "second")) is None
    async with asyncio.timeout(120):  # what was being indexed meanwhile goes with the next round
        while await left_of(server, account.id):
            await upkeep_loop.one_round(server.resources)
            await index_upkeep.tidy(server.resources.db)
    assert list(server.resources.blobs.names(-60.0)) == []
    assert (await asyncio.to_thread(rcpt, server.smtp_port, "gone"))[0] == 550


@pytest.mark.sqlite_alone
async def test_the_first_account_stays_and_names_are_there_once(server: Server) -> None:
    account = await second_account(server)
    first = (await server.resources.db.read(accounts.list_all))[0]
    with pytest.raises(FirstAccountStays):
        await server.resources.db.write(account_removal.close, first, server.clock.now())
    with pytest.raises(NameTaken):
        await server.resources.db.write(accounts.add, "second", "free", server.clock.now())
    assert told(await server.api.patch("/v1/account", json={"name": "second"})) == (409, "name_taken")
    assert (await server.api.patch("/v1/account", json={"name": first.name})).status_code == 200
    renamed = await server.resources.db.write(accounts.rename, account, "third")
    assert await server.resources.db.read(accounts.find, "third") == renamed


async def test_an_account_without_room_gets_452_and_507_until_it_has_room_again(server: Server) -> None:
    inbox_id = await server.new_inbox("own")
    await server.deliver(mail(1, body=LARGE), "own")
    account = (await server.resources.db.read(accounts.list_all))[0]
    inboxes = await server.resources.db.read(lambda tx: tx.all("select stored_bytes from inboxes"))
    assert account.stored_bytes == sum(row["stored_bytes"] for row in inboxes) > len(LARGE)
    await server.resources.db.write(accounts.set_storage_limit, account, account.stored_bytes)
    shown = (await server.api.get("/v1/account")).json()
    assert (shown["storedBytes"], shown["storageLimitBytes"]) == (account.stored_bytes,) * 2

    send = {"to": "own@postroom.localhost", "subject": "s", "body": "b"}
    path = f"/v1/inboxes/{inbox_id}/send"
    code, reply = await asyncio.to_thread(rcpt, server.smtp_port, "own+again")
    assert (code, reply[:5]) == (452, b"4.2.2")
    assert told(await server.api.post(path, json=send, headers={"Idempotency-Key": "a"})) == (
        507,
        "quota_exceeded",
    )
    await second_account(server)
    async with server.client(TOKEN) as neighbour:
        other = (await neighbour.post("/v1/inboxes", json={"mailboxName": "other"})).json()["id"]
        sent = await neighbour.post(f"/v1/inboxes/{other}/send", json=send, headers={"Idempotency-Key": "b"})
        assert "4.2.2" in await last_reply(neighbour, sent.json()["id"])
    (message,) = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert (await server.api.delete(f"/v1/messages/{message['id']}")).status_code == 204
    assert (await server.resources.db.read(accounts.list_all))[0].stored_bytes == 0
    assert (await asyncio.to_thread(rcpt, server.smtp_port, "own+again"))[0] == 250
    assert (await server.api.post(path, json=send, headers={"Idempotency-Key": "a"})).status_code == 200


@pytest.mark.sqlite_alone
async def test_mail_is_kept_for_as_long_as_its_inbox_or_else_its_account_says(server: Server) -> None:
    short, usual = await server.new_inbox("short"), await server.new_inbox("usual")
    await server.api.patch(f"/v1/inboxes/{short}", json={"retentionDays": 1})
    await server.api.patch("/v1/account", json={"retentionDays": 10})
    for number, name in ((1, "short"), (2, "usual")):
        await server.deliver(mail(number, body=LARGE), name)
    waits = {"to": "far@example.org", "subject": "waits", "body": "b"}
    await server.api.post(f"/v1/inboxes/{short}/send", json=waits, headers={"Idempotency-Key": "a"})

    async def subjects(inbox_id: str) -> list[str]:
        page: dict[str, Any] = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
        assert page["total"] == len(page["data"])
        return [message["subject"] for message in page["data"]]

    await upkeep_loop.one_round(server.resources)
    assert (await subjects(short), await subjects(usual)) == (["waits", "s"], ["s"])
    server.clock.turn(2 * DAY)
    await upkeep_loop.one_round(server.resources)
    assert (await subjects(short), await subjects(usual)) == (["waits"], ["s"])
    server.clock.turn(9 * DAY)
    await upkeep_loop.one_round(server.resources)
    assert (await subjects(short), await subjects(usual)) == (["waits"], [])
    assert list(server.resources.blobs.names(-60.0)) == []
