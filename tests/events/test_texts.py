"""The words of a mail stand once, in its message; its events are the same bytes all the same."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.mailbox import documents, messages
from postroom.storage import packing
from postroom.storage.database import Tx
from postroom.upkeep.upkeep_loop import one_round
from tests.api.endpoint import running_endpoint
from tests.api.test_stream import hear_bytes, open_stream, subscribe
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.raw_mails import raw_mail, raw_mail_with_files

WORDS = "A word that stands nowhere else: xylophone."


def all_documents(tx: Tx) -> dict[str, documents.Document]:
    rows = tx.all(f"select id, {documents.COLUMNS} from messages")
    return {row["id"]: documents.decode(documents.from_row(row)) for row in rows}


async def served(server: Server) -> bytes:
    return (await server.api.get("/v1/events")).content


def every_text() -> Iterator[bytes]:
    yield raw_mail(WORDS)
    yield raw_mail_with_files(("a.csv", "text/csv", b"a,xylophone\r\n1,2\r\n"), ("b.bin", "a/b", b""))
    yield raw_mail("Yes.\r\n\r\nOn 3 Nov 2025, Ann wrote:\r\n> old\r\n\r\nNo.\r\n\r\n> older\r\n")


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


@pytest.mark.sqlite_alone
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
    async with asyncio.timeout(120):
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
        assert documents.plain(rows[0]["document"]).count(b"xylophone") == 1
        stored = await server.resources.db.read(lambda tx: tx.all("select payload from events"))
        assert not any(b"xylophone" in packing.unpack_json(bytes(row["payload"])) for row in stored)
