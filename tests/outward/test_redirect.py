"""A mail passed on as it came: its author stays, our envelope and seal are added, every rule holds."""

import asyncio
import html
import imaplib
import re
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import dkim as dkimpy
import pytest
from httpx2 import Response

from postroom.net.dns import Resolver
from postroom_mail.authentication import dkim
from postroom_mail.authentication.arc import check_arc
from postroom_mail.authentication.canonical import split_mail
from postroom_mail.authentication.lookup import TimedLookup
from postroom_mail.writing.content_hash import content_hash
from postroom_mail.writing.content_view import view
from tests.api.test_dashboard import signed_in
from tests.conftest import Server, running_server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.doubles_dns import DnsServer, ZoneLookup
from tests.mail.keys import private_key, signing_key
from tests.outbound import PATIENCE_SECONDS, events_of, message_of, running, settled
from tests.outward.test_submitted_content import everything

RECORD = dkim.public_record(signing_key())
ZONE = {
    ("s1._domainkey.author.example", "TXT"): [RECORD],
    ("postroom._domainkey.postroom.localhost", "TXT"): [RECORD],
    ("_dmarc.author.example", "TXT"): ["v=DMARC1; p=reject"],
}
WRITTEN = (
    b"From: Ann <ann@author.example>\r\nTo: desk@postroom.localhost\r\nSubject: Hi\r\n"
    b"Message-ID: <1@author.example>\r\nX-MC-BccAddress: all@evil.example\r\n\r\nHello\r\n"
)
SIGNED = (
    dkim.sign(WRITTEN, domain="author.example", keys=[("s1", private_key())], signed_at=1_790_000_000_000)
    + WRITTEN
)


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def server(
    database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> AsyncIterator[Server]:
    async with DnsServer(dict(ZONE)) as dns:
        resolver, relay = (
            Resolver([dns.address], deadline_seconds=PATIENCE_SECONDS),
            f"smtp://127.0.0.1:{peer.port}",
        )
        async with running(tmp_path, database_url, clock, relay, resolver) as server:
            answer = await server.api.post("/v1/inboxes", json={"mailboxName": "desk"})
            assert answer.status_code == 201
            yield server


async def arrived(server: Server, raw: bytes = SIGNED) -> dict[str, Any]:
    await server.deliver(raw, "desk", sender="bounces@author.example")
    event = await server.next_event()
    return await message_of(server, event["message"]["id"])


async def redirect(
    server: Server, message_id: str, to: str = "boss@there.example", key: str = "k"
) -> Response:
    path = f"/v1/messages/{message_id}/redirect"
    return await server.api.post(path, json={"to": to}, headers={"Idempotency-Key": key})


@pytest.mark.sqlite_alone
async def test_a_mail_goes_on_as_it_came_under_our_envelope_and_seal(server: Server, peer: SmtpPeer) -> None:
    came = await arrived(server)
    assert (came["auth"]["dkim"], came["auth"]["dmarc"]) == ("pass", "pass")
    answer = await redirect(server, came["id"])
    assert answer.status_code == 200, answer.text
    assert (await redirect(server, came["id"])).headers["Idempotent-Replayed"] == "true"
    sent = await settled(server, answer.json()["id"])
    assert (sent["status"], sent["redirectOf"], sent["bcc"]) == ("sent", came["id"], ["boss@there.example"])
    assert (sent["threadId"], sent["subject"]) == (came["threadId"], "Hi")
    (mail,) = peer.mails
    assert (b"@postroom.localhost" in mail.mail_line, b"boss@there.example" in mail.rcpt_line) == (True, True)
    head = mail.raw.partition(b"\r\n\r\n")[0]
    for field in (b"From: Ann <ann@author.example>", b"Resent-From: desk@postroom.localhost"):
        assert field in head
    for field in (b"Resent-To: boss@there.example", b"dmarc=pass header.from=author.example"):
        assert field in head
    assert b"evil.example" not in mail.raw, "a stranger steers no relay of ours"
    verdict = check_arc(split_mail(mail.raw), TimedLookup(ZoneLookup(ZONE), 60, lambda: 0), 1_790_000_000)
    assert (verdict.verdict, verdict.sealers) == ("pass", ("postroom.localhost",))
    assert dkimpy.arc_verify(mail.raw, dnsfunc=lambda name, timeout=5: RECORD.encode())[0] == dkimpy.CV_Pass
    assert len(await events_of(server, "message.sent")) == 1


@pytest.mark.sqlite_alone
async def test_what_is_no_mail_of_somebody_else_is_not_passed_on(server: Server) -> None:
    came = await arrived(server)
    own = (await redirect(server, came["id"])).json()["id"]
    answer = await redirect(server, own, key="again")
    assert (answer.status_code, answer.json()["error"]) == (422, "not_redirectable")
    assert (await redirect(server, "msg_unknown", key="unknown")).status_code == 404
    answer = await redirect(server, came["id"], to="", key="nobody")
    assert (answer.status_code, answer.json()["field"]) == (400, "to")


@pytest.mark.sqlite_alone
async def test_whoever_approves_it_sees_where_it_goes(server: Server, peer: SmtpPeer) -> None:
    came = await arrived(server)
    await server.api.patch(f"/v1/inboxes/{came['inboxId']}", json={"approval": {"when": ["always"]}})
    answer = await redirect(server, came["id"])
    assert answer.json()["hold"]["state"] == "held", answer.text
    (waiting,) = (await server.api.get("/v1/approvals")).json()["data"]
    assert waiting["message"]["bcc"] == ["boss@there.example"]
    assert peer.mails == []


HIDING = (
    b"From: Ann <ann@author.example>\r\nTo: desk@postroom.localhost\r\nSubject: Hi\r\n"
    b"Message-ID: <2@author.example>\r\nSender: word-of-sender@bank.example\r\n"
    b"Bcc: word-of-bcc@bank.example\r\n"
    b"Resent-From: word-of-resent@bank.example\r\nAuthentication-Results: word-of-results; dkim=pass\r\n"
    b"List-Unsubscribe: <https://word-of-list.example>\r\nMIME-Version: 1.0\r\n"
    b"Content-Type: multipart/alternative; boundary=b\r\n\r\nword-of-preamble\r\n"
    b"--b\r\nContent-Type: text/plain\r\n\r\nHello\r\n"
    b"--b\r\nContent-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n"
    + b64encode(b"<p>word-of-first https://first.example</p>")
    + b"\r\n--b\r\nContent-Type: text/html; name=word-of-name\r\nContent-Description: word-of-description\r\n"
    b"\r\n<p>Hello</p>\r\n--b--\r\nword-of-epilogue\r\n"
)


@pytest.mark.sqlite_alone
async def test_whoever_approves_a_redirect_sees_all_that_leaves(server: Server, peer: SmtpPeer) -> None:
    came = await arrived(server, HIDING)
    approval = {"approval": {"when": ["links"]}}
    await server.api.patch(f"/v1/inboxes/{came['inboxId']}", json=approval)
    path, asked = f"/v1/inboxes/{came['inboxId']}/api-keys", {"name": "agent"}
    key = (await server.api.post(path, json=asked)).json()["token"]
    answer = await server.api.post(
        f"/v1/messages/{came['id']}/redirect",
        json={"to": "boss@there.example"},
        headers={"Idempotency-Key": "k", "Authorization": f"Bearer {key}"},
    )
    assert answer.json()["hold"]["reasons"] == ["links"], answer.text
    message_id = answer.json()["id"]
    async with signed_in(server) as page:
        shown = html.unescape((await page.get("/app/approvals", params={"message": message_id})).text)
    seen = answer.json()["hold"]["contentHash"]
    approved = await server.api.post(f"/v1/messages/{message_id}/approve", json={"contentHash": seen})
    assert approved.status_code == 200, approved.text
    assert (await settled(server, message_id))["status"] == "sent"
    wire = peer.mails[0].raw
    words = set(re.findall(r"word-of-\w+", everything(wire)))
    assert words == {
        f"word-of-{each}"
        for each in ("sender", "list", "preamble", "first", "name", "description", "epilogue")
    }
    assert {word for word in words if word not in shown} == set()
    assert content_hash(wire, ["boss@there.example"]) != content_hash(
        wire.replace(b"word-of-preamble", b"another"), ["boss@there.example"]
    )


@pytest.mark.sqlite_alone
async def test_an_email_that_a_mail_client_imported_is_not_redirected(
    database_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    """A client can import any bytes: redirected, they would be sent as they are."""
    config = settings(tmp_path, DATABASE_URL=database_url, IMAP="127.0.0.1:0")
    async with running_server(config, clock) as server:
        inbox_id = await server.new_inbox("desk")
        await asyncio.to_thread(append, server)
        (message,) = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"]
        answer = await redirect(server, message["id"])
        assert (answer.status_code, answer.json()["error"]) == (422, "not_redirectable")
        assert "imported" in answer.json()["message"]


def append(server: Server) -> None:
    with imaplib.IMAP4("127.0.0.1", server.imap_port or 0) as imap:
        imap.login("desk@postroom.localhost", server.token)
        assert imap.append("INBOX", "", "", WRITTEN)[0] == "OK"


def test_a_cut_in_what_an_approver_is_shown_is_mentioned() -> None:
    texts = b"".join(
        b"--b\r\nContent-Type: text/plain\r\n\r\n%s\r\n" % (b"%d " % n * 60_000) for n in (1, 2, 3)
    )
    head = b"Resent-Message-ID: <1@x>\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n"
    shown = view(head + texts + b"--b--\r\n", [])
    first, second = (text for _, text in shown.other_texts)
    assert (first, second[:6]) == ("1 " * 60_000, "2 2 2 ")
    assert second.endswith("[40,000 more characters: see the source]")
    assert shown.source.endswith("more bytes]")
