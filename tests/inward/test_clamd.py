"""clamd looks at each email and its files: what it finds is withheld, and no clamd holds email up forever."""

import asyncio
from base64 import b64encode
from email import message_from_bytes
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from postroom.config import ConfigError
from postroom.inward import examine
from postroom.net import clamd
from postroom.net.clamd import ClamdAway, Scanned, scan
from postroom.queue import leases
from tests.conftest import Server, running_server, settings
from tests.doubles import FakeClock
from tests.imap.live import aside, log_in, ok
from tests.inward.clamav import EICAR, NAME, Talk, odd_clamd, running_clamd
from tests.plain_transport import http_client
from tests.raw_mails import raw_mail, raw_mail_with_files
from tests.waiting import until

FILES = (("clean.txt", "text/plain", b"All is well."), ("bad.com", "application/octet-stream", EICAR))


async def shown(server: Server, path: str) -> tuple[int, Any]:
    answer = await server.api.get(path)
    is_json = answer.headers["content-type"].startswith("application/json")
    return answer.status_code, answer.json() if is_json else answer.content


@pytest.mark.sqlite_alone
@pytest.mark.needs("clamd")
async def test_what_clamd_finds_is_withheld_and_makes_the_email_malicious(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    folder = tmp_path / "clamd"
    folder.mkdir()
    async with running_clamd(folder) as address:
        config = settings(tmp_path, DATABASE_URL=database_url, CLAMD=address)
        async with running_server(config, clock) as server:
            await server.new_inbox("hello")
            await server.deliver(raw_mail_with_files(*FILES, message_id="<1@x>"), "hello")
            first = await server.next_event()
            await server.deliver(raw_mail("Nothing bad", message_id="<2@x>"), "hello")
            second = await server.next_event(after=first["event_id"])
            await server.deliver(raw_mail(EICAR.decode(), message_id="<3@x>"), "hello")
            third = await server.next_event(after=second["event_id"])
            await check_withheld(server, first["message"])
    assert [(file.get("infected"), file["scanned"]) for file in first["message"]["attachments"]] == [
        (None, True),
        (NAME, True),
    ]
    assert (first["message"]["verdict"], first["message"]["auto_replyable"]) == ("malicious", False)
    said = {"name": "infected", "weight": 6, "reason": f"clamd found {NAME}.", "excerpt": NAME}
    assert said in first["message"]["signals"]
    assert second["message"]["verdict"] == "clean"
    assert third["message"]["verdict"] == "malicious", "also in the text"


async def check_withheld(server: Server, message: dict[str, Any]) -> None:
    _, whole = await shown(server, f"/v1/messages/{message['id']}")
    place, (clean, bad) = f"/v1/attachments/{message['id']}", whole["attachments"]
    assert [(file["infected"], file["scanned"]) for file in (clean, bad)] == [(None, True), (NAME, True)]
    assert await shown(server, f"{place}/clean.txt") == (200, b"All is well.")
    assert (await shown(server, clean["url"]))[0] == 200
    for path in (f"{place}/bad.com", f"{place}/bad.com/preview"):
        code, answer = await shown(server, path)
        assert (code, answer["error"]) == (403, "infected"), path
    async with http_client() as keyless:
        for link in (bad["url"], bad["url"] + "&infected=yes"):
            refusal = await keyless.get(link)
            assert (refusal.status_code, refusal.json()["error"]) == (403, "infected"), link
    made = await server.api.post(f"{place}/bad.com/link")
    assert (made.status_code, made.json()["error"]) == (403, "infected")
    assert (await shown(server, f"{place}/bad.com?infected=yes")) == (200, EICAR)
    inbox_id = whole["inboxId"]
    reader = await server.api.post("/v1/api-keys", json={"inboxId": inbox_id, "permissions": ["read"]})
    token = reader.json()["token"]
    async with server.client(token) as client:
        refused = await client.get(f"{place}/bad.com?infected=yes")
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
    for fields in (
        {"attachments": [{"attachmentOf": {"messageId": message["id"], "filename": "bad.com"}}]},
        {"forwardOf": message["id"]},
    ):
        body = {"to": "bob@there.example", "subject": "Look", "body": "Look", **fields}
        path, key = f"/v1/inboxes/{inbox_id}/send", {"Idempotency-Key": str(len(str(fields)))}
        sent = await server.api.post(path, json=body, headers=key)
        assert (sent.status_code, sent.json()["error"]) == (403, "infected"), fields


@pytest.mark.needs("clamd")
async def test_more_than_clamd_takes_is_not_scanned(tmp_path: Path) -> None:
    async with running_clamd(tmp_path) as address:
        assert await scan(address, b"x" * 5_000_000) == Scanned(None, False)
        assert await scan(address, b"") == Scanned(None, True)
        assert await scan(address, b"a" * 400_000 + EICAR) == Scanned(NAME, True)


async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"stream: " * 1000)
        await writer.drain()


def says(answer: bytes) -> Talk:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(bytes(4))
        writer.write(answer)
        writer.close()

    return talk


async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def test_a_clamd_that_misbehaves_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs, never ends, leaves, or says what clamd never says."""
    monkeypatch.setattr(clamd, "SCAN_SECONDS", 0.3)
    odd = (b"stream: OK but\0", b"stream: OK", b"stream: A\nB FOUND\0", b"stream: \xff FOUND\0")
    for talk in (hang, flood, leave, *map(says, odd)):
        async with odd_clamd(talk) as address:
            with pytest.raises(ClamdAway):
                await scan(address, b"x" * 1_000_000)
    with pytest.raises(ClamdAway):
        await scan(address, b"nobody listens any more")


@pytest.mark.sqlite_alone
async def test_email_passes_unscanned_or_waits_for_clamd(
    database_url: str, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clamd, "SCAN_SECONDS", 0.3)
    monkeypatch.setattr(leases, "LEASE", 100)
    async with odd_clamd(hang) as address:
        config = settings(tmp_path, DATABASE_URL=database_url, CLAMD=address, CLAMD_WAIT="3600")
        async with running_server(config, clock) as server:
            await server.new_inbox("hello")
            await server.deliver(raw_mail_with_files(*FILES), "hello")
            await until(lambda: server.resources.db.read(tries))
            assert (await shown(server, "/v1/events"))[1]["data"] == [], "it waits"
            await until(lambda: server.resources.services.found)
            said = (await shown(server, "/ready"))[1]["warnings"]
            assert said == ["The malware scanner does not answer. Run `postroom doctor`."]
            clock.turn(3600 * 1000)
            server.resources.db.ring(examine.BELL)
            event = await server.next_event()
            _, message = await shown(server, f"/v1/messages/{event['message']['id']}")
    assert [(file["infected"], file["scanned"]) for file in message["attachments"]] == [(None, False)] * 2


def tries(tx: Any) -> bool:
    return tx.one("select 1 as found from examinations") is not None


def test_the_address_of_clamd_is_a_host_with_a_port_or_a_socket(tmp_path: Path) -> None:
    for right in ("127.0.0.1:3310", "unix:/run/clamav/clamd.ctl", "[::1]:3310", "clamav:3310"):
        assert settings(tmp_path, CLAMD=right).clamd == right
    for wrong in ("clamav", "unix:clamd", "127.0.0.1:", ":3310", "127.0.0.1:99999", "http://clamav"):
        with pytest.raises(ConfigError, match="POSTROOM_CLAMD"):
            settings(tmp_path, CLAMD=wrong)


async def finds(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What has the word EICAR in it is infected."""
    await reader.readuntil(b"\0")
    content = b""
    while size := int.from_bytes(await reader.readexactly(4), "big"):
        content += await reader.readexactly(size)
    is_bad = EICAR in content or b64encode(EICAR) in content
    writer.write(b"stream: Eicar FOUND\0" if is_bad else b"stream: OK\0")
    writer.close()


@pytest.mark.sqlite_alone
async def test_an_infected_email_leaves_by_no_other_way(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    async with odd_clamd(finds) as address:
        config = settings(tmp_path, DATABASE_URL=database_url, CLAMD=address, IMAP="127.0.0.1:0")
        async with running_server(config, clock) as server:
            inbox_id = await server.new_inbox("hello")
            raw = raw_mail_with_files(*FILES, text="The report that you asked for is attached. " * 3)
            await server.deliver(raw, "hello")
            message_id = (await server.next_event())["message"]["id"]
            path = f"/v1/messages/{message_id}/raw"
            code, answer = await shown(server, path)
            assert (code, answer["error"]) == (403, "infected")
            code, as_it_came = await shown(server, f"{path}?infected=yes")
            files = [part.get_payload(decode=True) for part in message_from_bytes(as_it_came).walk()]
            assert (code, EICAR in files) == (200, True)
            reader = await server.api.post(
                "/v1/api-keys", json={"inboxId": inbox_id, "permissions": ["read"]}
            )
            async with server.client(reader.json()["token"]) as client:
                assert (await client.get(f"{path}?infected=yes")).json()["error"] == "forbidden"
            listed = (await shown(server, f"/v0/inboxes/{inbox_id}/messages"))[1]["messages"][0]
            name = quote(listed["message_id"], safe="")
            assert (await shown(server, f"/v0/inboxes/{inbox_id}/messages/{name}/raw"))[0] == 403
            redirect = {"to": ["bob@there.example"]}
            sent = await server.api.post(
                f"/v1/messages/{message_id}/redirect", json=redirect, headers={"Idempotency-Key": "r"}
            )
            assert (sent.status_code, sent.json()["error"]) == (403, "infected")
            await aside(lambda: read_by_imap(server, as_it_came))


def read_by_imap(server: Server, as_it_came: bytes) -> None:
    client = log_in(server, "hello")
    ok(client.select("INBOX", readonly=True))
    (found,) = [
        each for each in ok(client.fetch("1", "(RFC822.SIZE BODY.PEEK[])")) if isinstance(each, tuple)
    ]
    assert f"RFC822.SIZE {len(as_it_came)}".encode() in found[0]
    assert len(found[1]) == len(as_it_came)
    assert EICAR not in found[1]
    assert b64encode(EICAR)[:20] not in found[1]
    read = message_from_bytes(found[1])
    assert [part.get_filename() for part in read.walk()] == [None, None, "clean.txt", "bad.com"]
    leaves = [part for part in read.walk() if not part.is_multipart()]
    text, clean, bad = (bytes(part.get_payload(decode=True)).strip() for part in leaves)
    assert text == b"clamd found Eicar. What this email holds is withheld."
    assert clean == bad == b""
    client.logout()
