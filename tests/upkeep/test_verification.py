"""A look at everything stored: a server in use is found sound, and each kind of damage is named."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from postroom.mailbox import raw_mails
from postroom.mailbox.search import indexing
from postroom.resources import Tx
from postroom.storage import packing
from postroom.storage.blobs import LocalBlobs
from postroom.upkeep.verification import verify
from postroom.upkeep.verification.verify import Verified
from tests.api.test_deletion import mail
from tests.conftest import Server

LARGE = b"x" * raw_mails.IN_ROW_BYTES


async def look(server: Server, repairs: bool = False) -> Verified:
    return await verify.verify(server.resources, repairs, lambda by: None)


async def found(server: Server) -> list[tuple[str, str]]:
    return [(each.part, each.what) for each in (await look(server)).findings]


async def until_idle(server: Server) -> None:
    """What was sent has arrived, and the entries of the index are made and removed."""

    def is_busy(tx: Tx) -> bool:
        return bool(
            tx.one("select 1 from deliveries where state = 'pending' limit 1")
            or indexing.progress(tx).waiting
        )

    async with asyncio.timeout(60):
        while await server.resources.db.read(is_busy):
            await asyncio.sleep(0.05)


async def use(server: Server) -> str:
    """Mail in and out, large and small, answered, deleted, blocked and released. Gives an inbox."""
    inbox_id, other = await server.new_inbox("own"), await server.new_inbox("strict")
    for number in range(4):
        await server.deliver(mail(number, body=LARGE if number == 3 else b"hi"), "own")
    await server.deliver(mail(9, answers=1), "own")
    rule = {"inbound": {"mode": "allowlist", "rules": []}}
    assert (await server.api.put(f"/v1/policy?inboxId={other}", json=rule)).is_success
    for number in (21, 22):
        await server.deliver(mail(number), "strict")
    blocked = f"/v1/inboxes/{other}/messages?include=blocked"
    async with asyncio.timeout(60):
        while (await server.api.get(blocked)).json()["total"] < 2:
            await asyncio.sleep(0.05)
    waiting = (await server.api.get(blocked)).json()["data"]
    assert (await server.api.post(f"/v1/messages/{waiting[0]['id']}/release")).is_success
    send = {"to": "strict@postroom.localhost", "subject": "s", "body": "b"}
    for key in "ab":
        answer = await server.api.post(
            f"/v1/inboxes/{inbox_id}/send", json=send, headers={"Idempotency-Key": key}
        )
        assert answer.is_success
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    gone = next(
        each for each in page if each["direction"] == "inbound" and each["rfcMessageId"] == "<2@example.com>"
    )
    assert (await server.api.delete(f"/v1/messages/{gone['id']}")).status_code == 204
    extra = await server.new_inbox("extra")
    await server.deliver(mail(31), "extra")
    assert (await server.api.delete(f"/v1/inboxes/{extra}")).status_code == 204
    return inbox_id


async def test_a_server_in_use_is_found_sound_and_its_counters_and_index_are_made_anew(
    server: Server,
) -> None:
    inbox_id = await use(server)
    await until_idle(server)
    verified = await look(server)
    assert verified.findings == []
    assert verified.looked_at == await verify.count_all(server.resources) > 20
    before = (await server.api.get(f"/v1/inboxes/{inbox_id}")).json()

    def damage(tx: Tx) -> None:
        tx.run("update inboxes set inbound_count = 77, stored_bytes = 5 where id = :id", id=inbox_id)
        tx.run("update threads set message_count = message_count + 1 where inbox_id = :id", id=inbox_id)
        tx.run("update accounts set inbox_count = 9, stored_bytes = 5")
        tx.run("update pods set inbox_count = 9")

    def damage_index(tx: Tx) -> None:
        tx.run("delete from search_documents")
        tx.run("insert into search_documents (doc, message_id, version) values (99999, 'msg_none', 1)")

    await server.resources.db.write(damage)
    await server.resources.db.write_index(damage_index)
    parts = {part for part, _ in await found(server)}
    assert parts == {
        "counters of inboxes",
        "counters of threads",
        "counters of accounts",
        "counters of pods",
        "search index",
        "entries of the search index",
    }
    assert (await look(server, repairs=True)).left == []
    await until_idle(server)
    assert await found(server) == []
    assert (await server.api.get(f"/v1/inboxes/{inbox_id}")).json() == before


UNREADABLE = (
    ("delete from raw_mails where message_id = :id", "its bytes are missing"),
    (
        "update raw_mails set size_bytes = size_bytes + 1 where message_id = :id",
        "its size differs",
    ),
    ("update messages set document = :junk where id = :id", "its fields cannot be read"),
    ("update messages set document = :damaged where id = :id", "its fields cannot be read"),
    (
        "update raw_mails set content = :damaged, content_bytes = 9 where message_id = :id",
        "its size differs",
    ),
    ("update messages set thread_id = 'thr_none' where id = :id", "its thread is missing"),
    ("update messages set inbox_id = 'inb_none' where id = :id", "its inbox is missing"),
    ("update messages set has_attachments = 1 where id = :id", "its attachments do not match"),
)


async def test_a_message_that_cannot_be_read_whole_is_named(server: Server) -> None:
    await server.new_inbox("own")
    values = {"junk": b'{"id":', "damaged": packing.MAGIC + b"x"}
    damaged = {}
    position = None
    for number, (change, what) in enumerate(UNREADABLE):
        await server.deliver(mail(number), "own")
        event = await server.next_event(after=position)
        position, message_id = event["event_id"], event["message"]["id"]
        params = {name: value for name, value in values.items() if f":{name}" in change}
        await server.resources.db.write(partial(damage, change, message_id, params))
        damaged[message_id] = what
    findings = (await look(server, repairs=True)).left
    assert len(findings) == len(UNREADABLE)
    assert {each.id: each.what[: len(damaged.get(each.id, ""))] for each in findings} == damaged


def damage(change: str, message_id: str, params: dict[str, bytes], tx: Tx) -> None:
    assert tx.run(change, id=message_id, **params) == 1


@pytest.mark.sqlite_alone
async def test_large_mails_that_are_damaged_or_missing_are_named(server: Server) -> None:
    await server.new_inbox("own")
    for number in range(3):
        await server.deliver(mail(number, body=LARGE), "own")
    blobs = server.resources.blobs
    assert isinstance(blobs, LocalBlobs)
    _, damaged, missing = sorted(blobs.names(-60.0))
    path: Path = blobs._path(damaged)
    path.write_bytes(path.read_bytes() + b"x")
    blobs.remove(missing)
    verified = await look(server)
    assert {each.id: each.what for each in verified.left} == {
        damaged: "its bytes are damaged",
        missing: "it is not in the store",
    }
