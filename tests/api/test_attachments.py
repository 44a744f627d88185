"""Attachments over REST: signed links, bytes, and the text that was found in them."""

import base64
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import httpx2
import pytest

from postroom import assembly
from postroom.clock import MINUTE
from postroom.inward.extraction_pool import ExtractionPool, Limits
from postroom_mail.files.extraction import MAX_CONTENT_BYTES
from tests.api.test_dashboard import signed_in
from tests.api.test_messages import stranger
from tests.api.test_send import send
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.extraction.test_pool import slow_file
from tests.extraction.test_preview import looked_at, png
from tests.mail import files
from tests.plain_transport import http_client
from tests.raw_mails import raw_mail, raw_mail_with_files

pytestmark = pytest.mark.sqlite_alone

SAMPLES = Path(__file__).parent.parent / "mail" / "samples"
CSV = ("table.csv", "text/csv", b"name,number\nanna,1\n")
BROKEN = files.pdf("Text").replace(b"/Pages", b"/Pxges")


async def received(
    server: Server, raw: bytes, after: str | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The event of a mail and its message, when the attachments are read."""
    await server.deliver(raw, "hello")
    event = await server.next_event(after)
    return event, (await server.api.get(f"/v1/messages/{event['message']['id']}")).json()


async def fetch_without_key(url: str) -> httpx2.Response:
    async with http_client() as keyless:
        return await keyless.get(url)


async def test_a_signed_link_works_without_a_key_for_fifteen_minutes(server: Server) -> None:
    """The link in an event is the same without a signature."""
    await server.new_inbox("hello")
    event, message = await received(server, raw_mail_with_files(CSV))
    [shown] = message["attachments"]
    url = shown["url"]
    assert url.startswith(f"{server.base_url}/v1/attachments/{message['id']}/table.csv?expires=")
    assert shown == {
        "filename": "table.csv",
        "contentType": "text/csv",
        "sizeBytes": len(CSV[2]),
        "url": url,
        "extractionMethod": "csv",
        "infected": None,
        "scanned": False,
        "parsedText": "name\tnumber\nanna\t1",
    }
    in_event = event["message"]["attachments"][0]["url"]
    assert in_event == f"{server.base_url}/v1/attachments/{message['id']}/table.csv"
    assert urlsplit(url)._replace(query="").geturl() == in_event
    assert (await server.api.get(in_event)).content == CSV[2]
    assert (await fetch_without_key(in_event)).status_code == 401
    async with server.client("pr_wrong") as api:
        assert (await api.get(url)).status_code == 401, "a bad key beside a good signature"
    server.clock.turn(15 * MINUTE - 1_000)
    answer = await fetch_without_key(url)
    assert (answer.status_code, answer.content) == (200, CSV[2])
    server.clock.turn(1_000)
    answer = await fetch_without_key(url)
    assert (answer.status_code, answer.json()["error"]) == (403, "invalid_signature")
    again = (await server.api.get(f"/v1/messages/{message['id']}")).json()["attachments"][0]["url"]
    assert (await fetch_without_key(again)).status_code == 200


async def test_an_altered_link_is_refused(server: Server) -> None:
    await server.new_inbox("hello")
    _, message = await received(server, raw_mail_with_files(CSV, ("b.csv", "text/csv", b"secret")))
    url = message["attachments"][0]["url"]
    head, _, signature = url.partition("&signature=")
    expires = head.rpartition("=")[2]
    for altered in (
        url.replace("table.csv", "b.csv"),
        url.replace("table.csv", "none.csv"),
        url.replace(f"={expires}", f"={int(expires) + 60}"),
        url.replace(f"={expires}", "=never"),
        url.replace(f"={expires}", "=%F0%9F%93%AE"),
        f"{head}&signature={signature[:-1]}{'1' if signature[-1] == '0' else '0'}",
        f"{head}&signature={signature.upper()}",
        f"{head}&signature=",
        f"{head}&signature=%FF%00",
        url.replace(message["id"], f"msg_{'0' * 32}"),
    ):
        answer = await fetch_without_key(altered)
        assert (answer.status_code, answer.json()["error"]) == (403, "invalid_signature"), altered
    assert (await fetch_without_key(head)).status_code == 401
    assert (await fetch_without_key(url.replace("table.csv", "table.csv/text"))).status_code == 401


async def test_the_bytes_come_with_headers_that_keep_a_browser_from_running_them(server: Server) -> None:
    await server.new_inbox("hello")
    script = b"<script>alert(1)</script>"
    _, message = await received(server, raw_mail_with_files(('ev"il\u00e9.html', "text/html", script)))
    for api, url in (
        (server.api, message["attachments"][0]["url"].partition("?")[0]),
        (None, message["attachments"][0]["url"]),
    ):
        answer = await api.get(url) if api else await fetch_without_key(url)
        assert answer.content == script
        assert answer.headers["Content-Type"] == "text/html"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"] == "sandbox"
        disposition = answer.headers["Content-Disposition"]
        assert disposition.startswith("attachment; filename*=UTF-8''")
        assert unquote(disposition.partition("''")[2]) == message["attachments"][0]["filename"]


async def test_names_inside_a_message_are_unique_and_harmless(server: Server) -> None:
    await server.new_inbox("hello")
    raw = raw_mail_with_files(
        ("a.pdf", "application/x-a", b"1"),
        ("a.pdf", "application/x-a", b"2"),
        ("../../etc/passwd", "application/x-a", b"3"),
        ("A.PDF", "application/x-a", b"4"),
        ("100% ?#&.txt", "application/x-a", b"5"),
        ("text", "application/x-a", b"6"),
        ("\U0001f4ee.bin", "application/x-a", b"7"),
    )
    _, message = await received(server, raw)
    names = [file["filename"] for file in message["attachments"]]
    assert names[:4] == ["a.pdf", "a (2).pdf", "passwd", "A (3).PDF"]
    assert len(set(names)) == 7
    for number, file in enumerate(message["attachments"], 1):
        assert (await fetch_without_key(file["url"])).content == str(number).encode()
        plain = f"/v1/attachments/{message['id']}/{quote(file['filename'], safe='')}"
        assert (await server.api.get(plain)).content == str(number).encode()


async def test_a_mail_inside_a_mail_is_an_attachment_and_a_part_without_a_name_gets_one(
    server: Server,
) -> None:
    await server.new_inbox("hello")
    event, nested = await received(server, (SAMPLES / "nested_message.eml").read_bytes())
    [file] = nested["attachments"]
    assert (file["contentType"], file["filename"][-4:]) == ("message/rfc822", ".eml")
    assert b"Subject:" in (await fetch_without_key(file["url"])).content
    _, unnamed = await received(server, (SAMPLES / "mixed_unnamed_parts.eml").read_bytes(), event["event_id"])
    assert unnamed["attachments"][0]["filename"].startswith("attachment-1.")


async def test_attachments_belong_to_their_account_and_to_the_scope_of_a_key(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    other = await server.new_inbox("other")
    _, message = await received(server, raw_mail_with_files(CSV))
    path = f"/v1/attachments/{message['id']}/table.csv"
    tokens = [
        (await server.api.post(f"/v1/inboxes/{inbox}/api-keys", json={"name": "k"})).json()["token"]
        for inbox in (inbox_id, other)
    ]
    own, scoped, foreign = server.client(tokens[0]), server.client(tokens[1]), await stranger(server)
    async with own, scoped, foreign:
        for ending in ("", "/text"):
            assert (await own.get(path + ending)).status_code == 200
            assert (await scoped.get(path + ending)).status_code == 404
            assert (await foreign.get(path + ending)).status_code == 404
    for wrong in (f"/v1/attachments/{message['id']}/none.csv", "/v1/attachments/msg_0/table.csv"):
        assert (await server.api.get(wrong)).status_code == 404
    assert (await server.api.get(f"/v1/attachments/{message['id']}/")).status_code == 404


async def test_a_file_is_there_before_it_is_read_and_its_text_is_given_alone(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    await server.deliver(raw_mail_with_files(CSV, ("x.bin", "application/x-thing", b"\0\1\2")), "hello")
    [message] = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    assert [file["filename"] for file in message["attachments"]] == ["table.csv", "x.bin"]
    await server.next_event()
    answer = await server.api.get(f"/v1/attachments/{message['id']}/table.csv/text")
    assert answer.json() == {
        "filename": "table.csv",
        "contentType": "text/csv",
        "extractionMethod": "csv",
        "text": "name\tnumber\nanna\t1",
        "offset": 0,
        "total": 18,
    }
    answer = await server.api.get(f"/v1/attachments/{message['id']}/x.bin/text")
    assert (answer.status_code, answer.json()["error"]) == (422, "no_text")
    assert "unsupported" in answer.json()["message"]


async def test_a_long_text_says_that_it_is_cut_and_goes_on(server: Server) -> None:
    await server.new_inbox("hello")
    words = "".join(f"number {number:05} ä " for number in range(4_000))
    event, message = await received(
        server, raw_mail_with_files(("long.txt", "text/plain", words.encode()), CSV)
    )
    wanted = words.strip()
    assert message["attachments"][0]["parsedText"] == wanted[:50_000]
    for files_told in (event["message"]["attachments"], message["attachments"]):
        assert [file.get("parsedTextTruncated") for file in files_told] == [True, None]
    address = f"/v1/attachments/{message['id']}/long.txt/text"
    gathered, total = "", len(wanted)
    while len(gathered) < total:
        piece = (await server.api.get(address, params={"offset": len(gathered)})).json()
        assert (piece["offset"], piece["total"]) == (len(gathered), total)
        assert 0 < len(piece["text"]) <= 50_000
        gathered += piece["text"]
    assert gathered == wanted
    for offset in (49_990, 50_000, 60_000, len(wanted), 1_000_000):
        piece = (await server.api.get(address, params={"offset": offset})).json()
        assert piece["text"] == wanted[offset : offset + 50_000]
        assert piece["total"] == len(wanted)
    short = f"/v1/attachments/{message['id']}/table.csv/text"
    assert (await server.api.get(short, params={"offset": 5})).json()["text"] == "number\nanna\t1"
    for refused_offset in ("-1", "1000001", "x"):
        refused = await server.api.get(address, params={"offset": refused_offset})
        assert (refused.status_code, refused.json()["error"]) == (400, "bad_request")


async def test_text_of_documents_is_there_when_the_event_comes(server: Server) -> None:
    await server.new_inbox("hello")
    raw = raw_mail_with_files(
        ("offer.pdf", "application/pdf", files.pdf("Offer 4711", "Total 12 EUR")),
        ("note.docx", "application/octet-stream", files.docx("<w:p><w:r><w:t>Dear Bob</w:t></w:r></w:p>")),
        ("page.html", "text/html", b"<p>Hello <b>there</b></p>"),
        ("plain.txt", "text/plain", b"just words"),
        ("blob.bin", "application/x-thing", b"\0\1"),
    )
    event, message = await received(server, raw)
    found = {
        file["filename"]: (file["extractionMethod"], file.get("parsedText"))
        for file in event["message"]["attachments"]
    }
    assert found["offer.pdf"][0] == "pdf"
    assert "Offer 4711" in found["offer.pdf"][1]
    assert found["note.docx"] == ("office", "Dear Bob")
    assert found["page.html"] == ("html", "Hello there")
    assert found["plain.txt"] == ("text", "just words")
    assert found["blob.bin"] == ("unsupported", None)
    assert found == {
        file["filename"]: (file["extractionMethod"], file.get("parsedText"))
        for file in message["attachments"]
    }


@pytest.fixture
async def strict(tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """Gives each file what is left of a second of a processor, instead of ten."""
    monkeypatch.setattr(assembly, "ExtractionPool", partial(ExtractionPool, Limits(cpu_seconds=0)))
    async with running_server(settings(tmp_path), clock) as server:
        yield server


async def test_hostile_files_cost_their_own_text_and_nothing_else(strict: Server) -> None:
    await strict.new_inbox("hello")
    hostile = [
        ("slow.docx", "application/octet-stream", slow_file()),
        ("broken.pdf", "application/pdf", BROKEN),
    ]
    event, message = await received(strict, raw_mail_with_files(*hostile, CSV))
    read = event["message"]["attachments"]
    assert [file["extractionMethod"] for file in read] == ["timed_out", "failed", "csv"]
    assert ["parsedText" in file for file in read] == [False, False, True]
    assert (await fetch_without_key(message["attachments"][0]["url"])).content == slow_file()
    assert (await strict.api.get("/health")).status_code == 200
    _, after = await received(strict, raw_mail_with_files(CSV, text="another"), event["event_id"])
    assert after["attachments"][0]["parsedText"] == "name\tnumber\nanna\t1"


async def test_a_file_over_ten_megabytes_is_not_read(server: Server) -> None:
    await server.new_inbox("hello")
    content = b"a" * (MAX_CONTENT_BYTES + 1)
    small = raw_mail_with_files(("large.txt", "text/plain", b"stand-in"), CSV)
    line = base64.encodebytes(content[:57])
    coded = line * (len(content) // 57) + base64.encodebytes(content[: len(content) % 57])
    raw = small.replace(base64.b64encode(b"stand-in"), coded)
    event, message = await received(server, raw)
    methods = [file["extractionMethod"] for file in event["message"]["attachments"]]
    assert methods == ["skipped_too_large", "csv"]
    assert (await fetch_without_key(message["attachments"][0]["url"])).content == content
    answer = await server.api.get(f"/v1/attachments/{message['id']}/large.txt/text")
    assert "skipped_too_large" in answer.json()["message"]


async def test_a_hundred_files_in_one_mail_end_in_one_event(server: Server) -> None:
    await server.new_inbox("hello")
    many = [(f"{number}.txt", "text/plain", b"%d" % number) for number in range(100)]
    event, _ = await received(server, raw_mail_with_files(*many))
    read = event["message"]["attachments"]
    assert [file["filename"] for file in read] == [name for name, _, _ in many]
    assert {file["extractionMethod"] for file in read} <= {"text", "timed_out"}
    await server.deliver(raw_mail("after"), "hello")
    assert (await server.next_event(event["event_id"]))["message"]["body_text"] == "after\n"


async def test_a_preview_is_a_small_picture_for_programs_and_pages(server: Server) -> None:
    bob = await server.new_inbox("bob")
    sent_files = [
        {"filename": "dot.png", "data": base64.b64encode(png(2, 1000, 10, b"abc")).decode()},
        {"filename": "a.txt", "data": base64.b64encode(b"words").decode()},
    ]
    sent = (await send(server, bob, attachments=sent_files)).json()
    path = f"/v1/attachments/{sent['id']}"
    found = await server.api.get(f"{path}/dot.png/preview")
    assert (found.status_code, found.headers["content-type"]) == (200, "image/png")
    assert looked_at(found.content) == (800, 8, tuple(b"abc"))
    refused = await server.api.get(f"{path}/a.txt/preview")
    assert (refused.status_code, refused.json()["error"]) == (422, "no_preview")
    assert (await server.api.get(f"{path}/other.png/preview")).status_code == 404
    async with signed_in(server) as page:
        shown = await page.get(f"/app/messages/{sent['id']}/preview?filename=dot.png")
        assert shown.content == found.content
