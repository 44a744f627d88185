"""Drafts are the same rows for mail programs and for the interface, live in both directions."""

import imaplib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Server
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok, running_imap
from tests.raw_mails import raw_mail

OWN = "agent@postroom.localhost"


@pytest.fixture
async def server(database_url: str, tmp_path: Path, clock: FakeClock) -> AsyncIterator[Server]:
    async with running_imap(tmp_path, clock, database_url) as running:
        yield running


async def drafts_of(server: Server, inbox_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await server.api.get(f"/v1/inboxes/{inbox_id}/drafts")).json()["data"]
    return found


async def test_a_draft_of_the_interface_is_a_mail_and_changes_with_it(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    path = f"/v1/inboxes/{inbox_id}/drafts"
    body = {"to": "bob@example.com", "bcc": ["carol@example.com"], "subject": "First", "body": "One"}
    first = (await server.api.post(path, json=body)).json()
    client = await aside(lambda: log_in(server, "agent"))

    def look(subject: str, text: str) -> int:
        assert ok(client.select("Drafts")) == [b"1"]
        parts = ok(client.fetch("1", "(UID FLAGS RFC822.SIZE ENVELOPE BODYSTRUCTURE BODY.PEEK[])"))
        words, raw = parts[0]
        assert b"\\Draft" in words
        assert f'"{subject}"'.encode() in words
        assert b"RFC822.SIZE %d " % len(raw) in words
        assert b"Bcc: carol@example.com\r\n" in raw
        assert b"To: bob@example.com\r\n" in raw
        assert raw.endswith(f"{text}\r\n".encode())
        assert ok(client.fetch("1", "(BODY.PEEK[])"))[0][1] == raw, "a UID has its bytes for ever"
        assert ok(client.search(None, "SUBJECT", subject)) == [b"1"]
        assert ok(client.search(None, "HEADER", "To", "bob")) == [b"1"]
        return int(words.partition(b"UID ")[2].split()[0])

    uid = await aside(lambda: look("First", "One"))
    change = {"subject": "Second", "body": "Two"}
    assert (await server.api.patch(f"/v1/drafts/{first['id']}", json=change)).status_code == 200
    assert await aside(lambda: look("Second", "Two")) > uid
    await server.api.delete(f"/v1/drafts/{first['id']}")

    def is_gone() -> None:
        ok(client.noop())
        assert ok(client.search(None, "ALL")) == [b""]
        client.logout()

    await aside(is_gone)


@pytest.mark.sqlite_alone
async def test_a_program_writes_and_deletes_drafts(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    await server.deliver(raw_mail("Question", subject="Asked", message_id="<q@x>"), "agent")
    (asked,) = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
    raw = (
        f"From: {OWN}\r\nTo: Bob <bob@example.com>, half@\r\nBcc: carol@example.com\r\nSubject: Re: Asked\r\n"
        "In-Reply-To: <q@x>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n"
        "--b\r\n\r\nAnswer\r\n--b\r\nContent-Type: text/csv\r\n"
        'Content-Disposition: attachment; filename="a.csv"\r\n\r\n1,2\r\n--b--\r\n'
    ).encode()
    client = await aside(lambda: log_in(server, "agent"))

    def write() -> bytes:
        uid = ok(client.append("Drafts", "(\\Draft \\Seen)", None, raw))[0].split(b"]")[0].split()[-1]
        ok(client.select("Drafts"))
        shown: bytes = ok(client.uid("FETCH", uid.decode(), "(BODY.PEEK[])"))[0][1]
        return shown

    shown = await aside(write)
    assert b"Answer" in shown
    assert b'filename="a.csv"' in shown
    (draft,) = await drafts_of(server, inbox_id)
    assert draft["to"] == ["Bob <bob@example.com>"]
    assert draft["bcc"] == ["carol@example.com"]
    assert draft["threadId"] == asked["threadId"]
    assert draft["body"].strip() == "Answer"
    assert [file["filename"] for file in draft["attachments"]] == ["a.csv"]
    sent = await server.api.post(f"/v1/drafts/{draft['id']}/send", headers={"Idempotency-Key": "k"})
    assert sent.status_code == 200, sent.text

    def write_another_and_delete_it() -> None:
        ok(client.noop())
        assert ok(client.search(None, "ALL")) == [b""]
        ok(client.append("Drafts", None, None, raw_mail("Again", subject="Again")))
        assert client.copy("1", "INBOX")[0] == "NO"
        ok(client.store("1", "+FLAGS", "\\Deleted"))
        assert ok(client.expunge())[-1] == b"1"
        ok(client.append("Drafts", None, None, raw_mail("Third", subject="Third")))
        assert client._simple_command("MOVE", "1", "Trash")[0] == "OK"
        client.logout()

    await aside(write_another_and_delete_it)
    assert await drafts_of(server, inbox_id) == []


@pytest.mark.sqlite_alone
async def test_who_may_only_read_writes_no_draft(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    body = {"name": "reader", "permissions": ["read"]}
    token = (await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json=body)).json()["token"]

    def write() -> None:
        client: imaplib.IMAP4 = log_in(server, "agent", token)
        word, data = client.append("Drafts", None, None, raw_mail("No"))
        assert word == "NO"
        assert b"[NOPERM]" in data[0]
        client.logout()

    await aside(write)
    assert await drafts_of(server, inbox_id) == []
