"""Files beside the request: uploads by a link that works once, files of messages again, downloads once."""

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from postroom import limits
from postroom.clock import HOUR, MINUTE
from postroom.mailbox import attachments, raw_mails
from postroom.storage.database import Tx
from postroom.upkeep import orphans
from postroom_mail.mime.parse import parse_mail
from tests.api.test_forwarded_risk import received
from tests.api.test_messages import stranger
from tests.api.test_send import send
from tests.conftest import Server
from tests.outward.test_holds import add_key
from tests.plain_transport import http_client
from tests.raw_mails import raw_mail_with_files

LARGE = b"0123456789abcdef" * 20_000
CSV = ("table.csv", "text/csv", b"name,number\nanna,1\n")


async def create(server: Server, inbox_id: str, size: int, api: Any = None, **fields: Any) -> httpx2.Response:
    asked = {"inboxId": inbox_id, "filename": "a.bin", "contentType": "application/x-a", "sizeBytes": size}
    return await (api or server.api).post("/v1/uploads", json=asked | fields)


async def put(url: str, content: bytes, **headers: str) -> httpx2.Response:
    async with http_client(headers=headers) as keyless:
        return await keyless.put(url, content=content)


async def uploaded(server: Server, inbox_id: str, content: bytes, **fields: Any) -> str:
    made = (await create(server, inbox_id, len(content), **fields)).json()
    assert (await put(made["url"], content)).status_code == 200
    upload_id: str = made["id"]
    return upload_id


async def files_of(server: Server, message_id: str) -> list[tuple[str, str, bytes]]:
    raw = await raw_mails.read(server.resources, message_id, with_trace=False)
    return [(file.filename, file.content_type, file.content) for file in parse_mail(raw).attachments]


async def raw_put(server: Server, url: str, head: str, *pieces: bytes) -> bytes:
    """A PUT written by hand: the pieces, then the end of what is sent."""
    reader, writer = await asyncio.open_connection(*server.base_url.removeprefix("http://").split(":"))
    writer.write(f"PUT {urlsplit(url).path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode())
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.share(2)
async def test_files_are_named_when_they_are_attached_to_sends_and_drafts(server: Server) -> None:
    """An upload is used up by the first; a repeat of the send is answered; the bytes leave no trace."""
    inbox_id = await server.new_inbox("hello")
    named = [
        {"uploadId": await uploaded(server, inbox_id, LARGE, filename="../large.bin")},
        {"filename": "note.txt", "text": "Grüße"},
        {"filename": "raw", "data": "AA=="},
    ]
    sent = await send(server, inbox_id, "key", attachments=named)
    assert sent.status_code == 200, sent.text
    assert await files_of(server, sent.json()["id"]) == [
        ("large.bin", "application/x-a", LARGE),
        ("note.txt", "text/plain", "Grüße".encode()),
        ("raw", "application/octet-stream", b"\0"),
    ]
    again = await send(server, inbox_id, "key", attachments=named)
    assert (again.json(), again.headers["idempotent-replayed"]) == (sent.json(), "true")
    used = await send(server, inbox_id, attachments=named)
    assert (used.status_code, used.json()["field"]) == (400, "attachments"), used.text

    small = {"uploadId": await uploaded(server, inbox_id, b"")}
    copied = {"attachmentOf": {"messageId": sent.json()["id"], "filename": "large.bin"}}
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json={"attachments": [small, copied]})
    assert [file["sizeBytes"] for file in made.json()["attachments"]] == [0, len(LARGE)], made.text
    draft = f"/v1/drafts/{made.json()['id']}"
    more = await server.api.post(f"{draft}/attachments", json={"attachments": [small]})
    assert (more.status_code, more.json()["field"]) == (400, "attachments"), more.text
    fields = {"to": "bob@there.example", "subject": "Hi", "body": "Hello", "attachments": [copied]}
    assert (await server.api.patch(draft, json=fields)).status_code == 200
    left = await server.api.post(f"{draft}/send", headers={"Idempotency-Key": "draft"})
    assert await files_of(server, left.json()["id"]) == [("large.bin", "application/x-a", LARGE)]
    kept = {name async for name in blobs_of(server)}
    assert len(kept) == 2  # the two emails


async def blobs_of(server: Server) -> Any:
    for name in server.resources.blobs.names(0):
        yield name


@pytest.mark.sqlite_alone
async def test_a_put_is_stored_once_and_only_at_its_exact_size_and_type(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    made = (await create(server, inbox_id, len(LARGE))).json()
    url = made["url"]
    refused = [
        await put(url, LARGE[1:]),
        await put(url, LARGE + b"x"),
        await put(url, LARGE, **{"Content-Type": "text/html"}),
    ]
    assert [(each.status_code, each.json()["error"]) for each in refused] == [
        (400, "bad_request"),
        (400, "bad_request"),
        (415, "unsupported_media_type"),
    ]
    chunked = "Transfer-Encoding: chunked\r\n"
    short = await raw_put(server, url, chunked, b"5\r\nhello\r\n0\r\n\r\n")
    long = await raw_put(server, url, chunked, b"%x\r\n%s\r\n" % (len(LARGE), LARGE), b"1\r\nx\r\n0\r\n\r\n")
    assert (short[9:12], long[9:12]) == (b"400", b"413")
    await raw_put(server, url, f"Content-Length: {len(LARGE)}\r\n", LARGE[:1000])  # it goes away
    async with http_client() as keyless:
        assert (await keyless.get(url)).status_code == 405
    waits = await send(server, inbox_id, attachments=[{"uploadId": made["id"]}])
    assert "has not arrived" in waits.json()["message"]

    both = await asyncio.gather(put(url, LARGE), put(url, LARGE, **{"Content-Type": "application/X-A; a=b"}))
    assert sorted(each.status_code for each in both) == [200, 404]
    assert (await put(url, LARGE)).status_code == 404
    shown = next(each.json() for each in both if each.status_code == 200)
    assert shown == {
        "id": made["id"],
        "filename": "a.bin",
        "contentType": "application/x-a",
        "sizeBytes": len(LARGE),
    }
    [blob] = [name async for name in blobs_of(server)]
    await orphans.sweep_orphans(server.resources)
    assert server.resources.blobs.get(blob) == LARGE
    sends = [send(server, inbox_id, attachments=[{"uploadId": made["id"]}]) for _ in range(2)]
    assert sorted(each.status_code for each in await asyncio.gather(*sends)) == [200, 400]


@pytest.mark.sqlite_alone
async def test_an_upload_ends_with_its_time_its_key_and_its_room(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    token = await server.resources.db.write(add_key, server, inbox_id, ["draft"])
    async with server.client(token) as agent:
        late = (await create(server, inbox_id, 1, agent)).json()
        stored = await uploaded(server, inbox_id, b"x")
        server.clock.turn(15 * MINUTE)
        assert (await put(late["url"], b"x")).status_code == 404
        of_key = (await create(server, inbox_id, 1, agent)).json()
    await server.resources.db.write(lambda tx: tx.run("delete from keys where inbox_id is not null"))
    assert (await put(of_key["url"], b"x")).status_code == 404
    server.clock.turn(HOUR)
    gone = await send(server, inbox_id, attachments=[{"uploadId": stored}])
    assert (gone.status_code, gone.json()["field"]) == (400, "attachments")

    whole = limits.ATTACHMENTS_BYTES
    taken = [await create(server, inbox_id, size) for size in (whole, whole, whole, whole, 1)]
    assert [each.status_code for each in taken] == [201, 201, 201, 201, 422]
    assert taken[-1].json()["error"] == "upload_limit_reached"
    server.clock.turn(15 * MINUTE)
    many = [(await create(server, inbox_id, 0)).status_code for _ in range(limits.UPLOADS_WAITING + 1)]
    assert many == [201] * limits.UPLOADS_WAITING + [422]


@pytest.mark.sqlite_alone
async def test_no_key_attaches_what_it_may_not_read(server: Server) -> None:
    """Uploads of other inboxes and files of other accounts are answered like unknown ones."""
    inbox_id, other_id = await server.new_inbox("hello"), await server.new_inbox("other")
    await server.deliver(raw_mail_with_files(CSV), "hello")
    message_id = (await server.next_event())["message"]["id"]
    foreign = await uploaded(server, other_id, b"x")
    unknown = [{"uploadId": foreign}, {"uploadId": foreign[:-1] + "0"}, {"uploadId": "x"}]
    named = {"attachmentOf": {"messageId": message_id, "filename": "table.csv"}}
    answers = [await send(server, inbox_id, attachments=[each]) for each in unknown]
    assert {(each.status_code, each.text) for each in answers} == {(400, answers[0].text)}
    tokens = [await server.resources.db.write(add_key, server, inbox_id, [word]) for word in ("send", "read")]
    of_other = await server.resources.db.write(add_key, server, other_id, ["read", "send"])
    async with (
        server.client(tokens[0]) as sender,
        server.client(tokens[1]) as reader,
        server.client(of_other) as other,
        await stranger(server) as outside,
    ):
        assert (await send(server, inbox_id, api=sender, attachments=[named])).status_code == 403
        assert (await create(server, inbox_id, 1, reader)).status_code == 403
        asked = [await create(server, inbox_id, 1, api) for api in (other, outside)]
        assert {(each.status_code, each.json()["field"]) for each in asked} == {(400, "inboxId")}
        hidden = await send(server, other_id, api=other, attachments=[named])
        absent = {"attachmentOf": {"messageId": f"{message_id[:-1]}0", "filename": "table.csv"}}
        missing = await send(server, other_id, api=other, attachments=[absent])
        assert (hidden.status_code, hidden.text) == (missing.status_code, missing.text) == (400, missing.text)
        link = f"/v1/attachments/{message_id}/table.csv/link"
        assert [(await api.post(link)).status_code for api in (sender, other, outside)] == [403, 404, 404]
    taken = await send(server, other_id, attachments=[named])
    assert await files_of(server, taken.json()["id"]) == [CSV]


@pytest.mark.sqlite_alone
async def test_each_file_has_one_form_and_a_clean_name(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    wrong: list[Any] = [
        {"filename": "a"},
        {"filename": "a", "data": "AA==", "text": "a"},
        {"text": "a", "uploadId": "upl_x"},
        {"filename": "b", "uploadId": "upl_x"},
        {"attachmentOf": {"messageId": "msg_x"}},
        {"uploadId": None},
    ]
    for each in wrong:
        answer = await send(server, inbox_id, attachments=[each])
        assert (answer.status_code, answer.json()["field"]) == (400, "attachments"), (each, answer.text)
    upload = {"uploadId": await uploaded(server, inbox_id, b"x")}
    twice = await send(server, inbox_id, attachments=[upload, upload])
    assert twice.status_code == 400
    for field, value in {
        "filename": "\u202e.",
        "contentType": "text/html\r\nX: y",
        "sizeBytes": limits.ATTACHMENTS_BYTES + 1,
        "inboxId": "inb_x",
    }.items():
        answer = await create(server, inbox_id, 1, **{field: value})
        assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text
    huge = [{"uploadId": await uploaded(server, inbox_id, bytes(limits.ATTACHMENTS_BYTES))}, upload]
    assert (await send(server, inbox_id, attachments=huge)).status_code == 413


@pytest.mark.sqlite_alone
async def test_a_file_of_what_is_not_clean_waits_for_approval_also_in_a_draft(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": ["risk"]}})
    await server.deliver(raw_mail_with_files(CSV), "hello")
    clean = (await server.next_event())["message"]["id"]

    def taint(tx: Tx) -> str:
        message_id = received(tx, inbox_id, "malicious")
        found = attachments.list_of_messages(tx, [clean])[clean]
        attachments.add_all(tx, [(message_id, file) for file in found])
        tx.run(
            "update raw_mails set content = (select content from raw_mails where message_id = :clean),"
            " content_bytes = (select content_bytes from raw_mails where message_id = :clean),"
            " text_at = null, html_at = null, blob = null,"
            " trace_bytes = (select trace_bytes from raw_mails where message_id = :clean)"
            " where message_id = :id",
            clean=clean,
            id=message_id,
        )
        return message_id

    tainted = await server.resources.db.write(taint)
    for message_id, is_held in ((clean, False), (tainted, True)):
        files = [{"attachmentOf": {"messageId": message_id, "filename": "table.csv"}}]
        sent = await send(server, inbox_id, to="bob@there.example", attachments=files)
        fields = {"to": "bob@there.example", "subject": "Hi", "body": "Hello", "attachments": files}
        made = await server.api.post(f"/v1/inboxes/{inbox_id}/drafts", json=fields)
        path = f"/v1/drafts/{made.json()['id']}/send"
        left = await server.api.post(path, headers={"Idempotency-Key": message_id})
        for answer in (sent, left):
            assert answer.status_code == 200, answer.text
            assert ("hold" in json.loads(answer.text)) is is_held


async def test_a_download_link_gives_the_file_once_for_fifteen_minutes(server: Server) -> None:
    await server.new_inbox("hello")
    await server.deliver(raw_mail_with_files(CSV), "hello")
    message_id = (await server.next_event())["message"]["id"]
    path = f"/v1/attachments/{message_id}/table.csv/link"
    made = await server.api.post(path)
    assert made.status_code == 201, made.text
    shown = made.json()
    assert (shown["filename"], shown["contentType"], shown["sizeBytes"]) == ("table.csv", "text/csv", 19)
    async with http_client() as keyless:
        assert (await keyless.put(shown["url"], content=b"x")).status_code == 405
        both = await asyncio.gather(*(keyless.get(shown["url"]) for _ in range(2)))
        assert sorted(each.status_code for each in both) == [200, 404]
        given = next(each for each in both if each.status_code == 200)
        assert (given.content, given.headers["cache-control"]) == (CSV[2], "no-store")
        assert given.headers["content-security-policy"] == "sandbox"
        late = (await server.api.post(path)).json()["url"]
        server.clock.turn(15 * MINUTE)
        assert (await keyless.get(late)).status_code == 404
        assert (await keyless.get(f"{server.base_url}/downloads/nonsense")).status_code == 404
