"""The words of a mail stand once, in its message; its events are the same bytes all the same."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.accounts.reach import Reach
from postroom.assembly import open_database, serving
from postroom.events import events
from postroom.events.events import EventChoice
from postroom.mailbox import documents, messages
from postroom.storage.database import Database, Tx
from postroom.upkeep.conversion import convert_some
from postroom.upkeep.upkeep import one_round
from tests.api.endpoint import running_endpoint
from tests.api.test_stream import hear_bytes, open_stream, subscribe
from tests.conftest import Server, new_postgres_database, running_server, settings
from tests.doubles import START, FakeClock
from tests.letters import letter, letter_with_files
from tests.mail.keys import signing_key
from tests.storage.earlier_version import make_database, rows_of

ACCOUNT_ID = rows_of("accounts")[0]["id"]
WORDS = "A word that stands nowhere else: xylophone."


def all_payloads(tx: Tx, account_id: str = ACCOUNT_ID) -> dict[str, bytes]:
    page = events.list_after(tx, EventChoice(Reach(account_id)), 0, 1000)
    return {event.id: event.payload for event in page.events}


def all_documents(tx: Tx) -> dict[str, documents.Document]:
    rows = tx.all(f"select id, {documents.COLUMNS} from messages")
    return {row["id"]: documents.decode(documents.from_row(row)) for row in rows}


def payloads_of_schema_5() -> dict[str, bytes]:
    return {row["id"]: row["payload"] for row in rows_of("events")}


def documents_of_schema_5() -> dict[str, documents.Document]:
    return {row["id"]: documents.decode(row["document"]) for row in rows_of("messages")}


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty database."""
    with new_postgres_database("template1") as url:
        yield url


@pytest.fixture
async def upgraded(database_url: str, tmp_path: Path) -> Database:
    make_database(database_url, tmp_path)
    return await open_database(settings(tmp_path, DATABASE_URL=database_url), START)


async def test_every_event_of_an_upgraded_database_is_byte_for_byte_what_it_was(
    upgraded: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("postroom.upkeep.conversion.STEP_ROWS", 3)
    before = payloads_of_schema_5()
    steps, is_done = 0, False
    while not is_done:
        assert await upgraded.read(all_payloads) == before
        assert await upgraded.read(all_documents) == documents_of_schema_5()
        is_done = await upgraded.write(convert_some)
        steps += 1
    assert steps > 10
    assert await upgraded.read(all_payloads) == before
    assert await upgraded.read(all_documents) == documents_of_schema_5()
    await upgraded.close()


async def test_what_was_converted_has_its_words_once(upgraded: Database) -> None:
    while not await upgraded.write(convert_some):
        pass
    rows = await upgraded.read(
        lambda tx: tx.all(
            "select events.id, payload, text_files from events join messages on messages.id = message_id"
        )
    )
    before = payloads_of_schema_5()
    assert {row["text_files"] for row in rows} >= {"", "0"}
    assert None not in {row["text_files"] for row in rows}
    for row in rows:
        message = json.loads(bytes(row["payload"]))["message"]
        assert (message["body_text"], message["reply_text"]) == ("", "")
        assert len(bytes(row["payload"])) <= len(before[row["id"]])
    await upgraded.close()


async def test_an_event_whose_message_was_deleted_before_the_upgrade_stays_as_it_was(
    upgraded: Database,
) -> None:
    while not await upgraded.write(convert_some):
        pass
    known = {row["id"] for row in rows_of("messages")}
    orphans = [row for row in rows_of("events") if row["message_id"] not in known]
    found = await upgraded.read(all_payloads)
    assert orphans
    assert all(found[row["id"]] == row["payload"] for row in orphans)
    await upgraded.close()


async def test_a_server_converts_while_it_serves_and_goes_on_after_a_restart(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_database(database_url, tmp_path)
    config = settings(tmp_path, DATABASE_URL=database_url)
    db = await open_database(config, START)
    monkeypatch.setattr("postroom.upkeep.conversion.STEP_ROWS", 2)
    for _ in range(3):
        await db.write(convert_some)
    await db.close()

    async with serving(config, FakeClock(), make_key=signing_key) as postroom:
        async with asyncio.timeout(30):
            while await postroom.resources.db.read(conversions):
                assert await postroom.resources.db.read(all_payloads) == payloads_of_schema_5()
                await asyncio.sleep(0)
        assert await postroom.resources.db.read(all_payloads) == payloads_of_schema_5()


def conversions(tx: Tx) -> list[str]:
    return [row["name"] for row in tx.all("select name from conversions")]


async def test_an_event_of_the_earlier_version_forgets_its_words_with_its_message(
    upgraded: Database,
) -> None:
    row = next(row for row in rows_of("events") if row["message_id"] == rows_of("messages")[0]["id"])
    body = json.loads(row["payload"])["message"]["body_text"]
    assert body

    def remove(tx: Tx) -> None:
        events.forget_texts(tx, [row["message_id"]])
        tx.run("delete from messages where id = :id", id=row["message_id"])

    await upgraded.write(remove)
    payload = (await upgraded.read(all_payloads))[row["id"]]
    said = json.loads(payload)
    assert (said["deleted"], said["message"]["body_text"], said["message"]["reply_text"]) == (True, "", "")
    assert said["message"]["subject"] == json.loads(row["payload"])["message"]["subject"]
    await upgraded.close()


async def served(server: Server) -> bytes:
    return (await server.api.get("/v1/events")).content


def every_text() -> Iterator[bytes]:
    yield letter(WORDS)
    yield letter_with_files(("a.csv", "text/csv", b"a,xylophone\r\n1,2\r\n"), ("b.bin", "a/b", b""))
    yield letter("Yes.\r\n\r\nOn 3 Nov 2025, Ann wrote:\r\n> old\r\n\r\nNo.\r\n\r\n> older\r\n")


async def test_stream_webhook_log_and_replay_give_the_same_bytes_whatever_becomes_of_the_message(
    server: Server,
) -> None:
    await server.new_inbox("hello")
    async with running_endpoint() as endpoint, open_stream(server) as stream:
        await server.api.put("/v1/webhook", json={"url": endpoint.url})
        await subscribe(stream)
        for raw in every_text():
            await server.deliver(raw, "hello")
        heard = [await hear_bytes(stream) for _ in range(3)]
        await endpoint.wait_for(3)
    assert sorted(body for _, body in endpoint.requests) == sorted(heard)
    assert b'"data":[' + b",".join(heard) + b"]" in await served(server)

    first = json.loads(heard[0])
    await server.api.patch(f"/v1/threads/{first['thread_id']}", json={"is_read": True})
    await server.resources.db.write(change_documents)
    assert b'"data":[' + b",".join(heard) + b"]" in await served(server)
    async with open_stream(server) as again:
        await subscribe(again, last_event_id=first["event_id"])
        assert [await hear_bytes(again) for _ in range(2)] == heard[1:]


def change_documents(tx: Tx) -> None:
    """What is found out later about a message changes nothing that was told before."""
    for document in all_documents(tx).values():
        later = documents.Verdicts("fail", "fail", "fail", "later.example")
        messages.set_document(tx, replace(document, auth=later, automated=True, new_participant=True))


async def test_an_event_of_a_deleted_message_comes_without_its_texts(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    for number, raw in enumerate(every_text()):
        await server.deliver(raw, "hello")
        await events_of(server, number + 1)
    before = json.loads(await served(server))["data"]
    assert b"xylophone" in await served(server)
    await server.api.delete(f"/v1/inboxes/{inbox_id}")
    await one_round(server.resources)
    assert b"xylophone" not in await served(server)
    for was, event in zip(before, json.loads(await served(server))["data"], strict=True):
        assert event.pop("deleted") is True
        for file in event["message"]["attachments"]:
            assert file.get("parsedText", "") == ""
            file.pop("parsedText", None)
        for file in was["message"]["attachments"]:
            file.pop("parsedText", None)
        assert (event["message"]["body_text"], event["message"]["reply_text"]) == ("", "")
        for text in ("body_text", "reply_text"):
            del event["message"][text], was["message"][text]
        assert event == was


async def events_of(server: Server, count: int) -> None:
    async with asyncio.timeout(20):
        while len(json.loads(await served(server))["data"]) < count:
            await asyncio.sleep(0.05)


async def test_a_reply_text_is_kept_as_a_span_where_it_is_one_and_else_beside_the_text(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with running_server(settings(tmp_path), clock) as server:
        await server.new_inbox("hello")
        for number, raw in enumerate(every_text()):
            await server.deliver(raw, "hello")
            await events_of(server, number + 1)
        rows = await server.resources.db.read(
            lambda tx: tx.all("select document, reply_at from messages order by created_at, id")
        )
        assert [row["reply_at"] is None for row in rows] == [False, False, True]
        assert bytes(rows[0]["document"]).count(b"xylophone") == 1
        stored = await server.resources.db.read(lambda tx: tx.all("select payload from events"))
        assert not any(b"xylophone" in bytes(row["payload"]) for row in stored)
