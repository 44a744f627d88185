"""A recipient who clicks the link of List-Unsubscribe gets nothing more (RFC 8058)."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from postroom_mail.writing import unsubscribe_link
from postroom_mail.writing.unsubscribe_link import Unsubscription
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import events_of, is_signed, relay_to, running, send, settled, suppressed
from tests.plain_transport import http_client

pytestmark = pytest.mark.sqlite_alone

LINK = re.compile(rb"^List-Unsubscribe: <(http[^>]+)>\r\n", re.M)


@pytest.fixture
async def peer() -> AsyncIterator[SmtpPeer]:
    async with SmtpPeer() as peer:
        yield peer


@pytest.fixture
async def host(database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer) -> AsyncIterator[Server]:
    async with running(tmp_path, database_url, clock, relay_to(peer)) as server:
        yield server


def link_of(raw: bytes) -> str:
    found = LINK.search(raw)
    assert found is not None, raw
    return found[1].decode()


async def test_a_click_suppresses_the_recipient_and_nobody_else(host: Server, peer: SmtpPeer) -> None:
    bob = await host.new_inbox("bob")
    to = ("carol@there.example", "dan@there.example")
    message_id = await send(host, bob, *to, unsubscribe=True)
    await settled(host, message_id)
    mails = {mail.rcpt_line.split(b"<")[1].split(b"@")[0].decode(): mail.raw for mail in peer.mails}
    links = {name: link_of(raw) for name, raw in mails.items()}
    assert len(set(links.values())) == 2, "a link of his own for each"
    for raw in mails.values():
        assert raw.count(b"\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n") == 1
        assert re.search(rb"\r\nFeedback-ID: [0-9a-f]{12}:[0-9a-f]{12}:mail:postroom\r\n", raw)
        assert b"list-unsubscribe-post" in raw.partition(b"bh=")[0]
        assert await is_signed(host, raw, host.resources.config.domain)
    async with http_client() as world:
        looked = await world.get(links["carol"])
        assert (looked.status_code, "<button" in looked.text) == (200, True)
        assert looked.headers["cache-control"] == "no-store"
        assert await suppressed(host) == {}, "a program that looks at every link decides nothing"
        for _ in range(2):
            clicked = await world.post(links["carol"], data={"List-Unsubscribe": "One-Click"})
            assert (clicked.status_code, "set-cookie" in clicked.headers) == (200, False)
        assert "<button" not in (await world.get(links["carol"])).text
        assert (await world.post(links["carol"][:-1] + "A")).status_code == 404
        assert (await world.put(links["carol"])).status_code == 405
    assert await suppressed(host) == {"carol@there.example": "unsub"}
    (event,) = await events_of(host, "message.unsubscribed")
    assert (event["recipient"], event["message"]["id"]) == ("carol@there.example", message_id)
    refused = await host.api.post(
        f"/v1/inboxes/{bob}/send",
        headers={"Idempotency-Key": "again"},
        json={"to": "carol@there.example", "subject": "Again", "body": "Hello?"},
    )
    assert refused.json()["error"] == "recipient_suppressed"
    plain = await send(host, bob, "dan@there.example")
    await settled(host, plain)
    assert b"Unsubscribe" not in peer.mails[-1].raw
    assert b"Feedback-ID" not in peer.mails[-1].raw


async def test_a_link_counts_when_its_mail_is_deleted(host: Server, peer: SmtpPeer) -> None:
    bob = await host.new_inbox("bob")
    draft = await host.api.post(
        f"/v1/inboxes/{bob}/drafts",
        json={"to": "carol@there.example", "subject": "News", "body": "Hello", "unsubscribe": True},
    )
    assert draft.json()["unsubscribe"] is True
    sent = await host.api.post(f"/v1/drafts/{draft.json()['id']}/send", headers={"Idempotency-Key": "draft"})
    await settled(host, sent.json()["id"])
    assert (await host.api.delete(f"/v1/messages/{sent.json()['id']}")).status_code == 204
    async with http_client() as world:
        assert (await world.post(link_of(peer.mails[0].raw))).status_code == 200
    assert await suppressed(host) == {"carol@there.example": "unsub"}
    assert await events_of(host, "message.unsubscribed") == []


def test_only_what_this_server_signed_is_read() -> None:
    wish = Unsubscription(f"acc_{1:032x}", f"msg_{2:032x}", "käthe@there.example")
    token = unsubscribe_link.encode(b"secret", wish)
    assert unsubscribe_link.decode(b"secret", token) == wish
    assert unsubscribe_link.decode(b"other", token) is None
    for number in range(len(token) - 1):  # the last letter has bits that say nothing
        altered = f"{token[:number]}{'A' if token[number] != 'A' else 'B'}{token[number + 1 :]}"
        assert unsubscribe_link.decode(b"secret", altered) is None
    for odd in ("", "A", "A" * 60, "A" * 61, "ü" * 80, "A" * 501):
        assert unsubscribe_link.decode(b"secret", odd) is None
