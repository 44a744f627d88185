"""Mail of a connected inbox leaves through its mailbox's own server; a second relay when one is away."""

import asyncio
from pathlib import Path

import pytest

from tests.conftest import Server, running_server, settings
from tests.connections.dovecot import PASSWORD, running_dovecot
from tests.connections.test_mailboxes import USER, connect
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock


async def send(server: Server, inbox_id: str) -> None:
    answer = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send",
        json={"to": "bob@example.org", "subject": "Hi", "body": "Hello"},
        headers={"Idempotency-Key": "1"},
    )
    assert answer.status_code == 200, answer.text


async def until_taken(peer: SmtpPeer) -> None:
    async with asyncio.timeout(120):
        while not peer.mails:
            await asyncio.sleep(0.05)


@pytest.mark.needs("dovecot")
@pytest.mark.sqlite_alone
async def test_it_leaves_through_the_mailbox_and_a_copy_lies_in_sent(server: Server) -> None:
    async with running_dovecot() as dovecot, SmtpPeer(credentials=(USER, PASSWORD)) as peer:
        inbox_id = await server.new_inbox("agent")
        smtp = {"host": "127.0.0.1", "port": peer.port}
        await connect(server, dovecot, inbox_id, smtp=smtp)
        await send(server, inbox_id)
        await until_taken(peer)
        (mail,) = peer.mails
        assert USER.encode() in mail.mail_line
        assert f"From: {USER}".encode() in mail.raw
        async with asyncio.timeout(60):
            while not dovecot.mails_of(USER, ".Sent"):
                await asyncio.sleep(0.05)
        (copy,) = dovecot.mails_of(USER, ".Sent")
        assert copy.read_bytes().replace(b"\r\n", b"\n") == mail.raw.replace(b"\r\n", b"\n")


@pytest.mark.sqlite_alone
async def test_the_second_relay_is_used_while_the_first_takes_no_connections(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with SmtpPeer() as peer:
        ways = f"smtp://127.0.0.1:9 smtp://127.0.0.1:{peer.port}"
        async with running_server(settings(tmp_path, OUTBOUND=ways), clock) as server:
            await send(server, await server.new_inbox("agent"))
            await until_taken(peer)
    assert len(peer.mails) == 1


async def test_mail_leaves_by_the_relay_of_its_pod_and_the_password_is_not_shown(server: Server) -> None:
    inbox = (await server.api.post("/v1/inboxes", json={"mailboxName": "agent"})).json()
    async with SmtpPeer(credentials=("me", "s3cret")) as peer:
        relay = f"smtp://me:s3cret@127.0.0.1:{peer.port}"
        pod = (await server.api.patch(f"/v1/pods/{inbox['podId']}", json={"outbound": relay})).json()
        assert pod["outbound"] == f"smtp://me:***@127.0.0.1:{peer.port}"
        await send(server, inbox["id"])
        await until_taken(peer)
    assert "s3cret" not in (await server.api.get("/v1/audit")).text


@pytest.mark.sqlite_alone
async def test_a_domain_has_a_relay_of_its_own_and_bad_ones_are_refused(server: Server) -> None:
    domain = (await server.api.post("/v1/domains", json={"domain": "mail.example.com"})).json()
    path = f"/v1/domains/{domain['id']}"
    for bad in ("mx", "capture", "smtp://host/x", "resend://***@", "ses://a:b@nowhere", "mx resend://k@"):
        answer = await server.api.patch(path, json={"outbound": bad})
        assert (answer.status_code, answer.json()["field"]) == (400, "outbound"), bad
    given = {"outbound": "postmark://tok3n@ smtps://a:b@relay.example.com"}
    changed = (await server.api.patch(path, json=given)).json()
    assert changed["outbound"] == "postmark://***@ smtps://a:***@relay.example.com"
    assert (await server.api.patch(path, json={})).json() == changed
    assert (await server.api.patch(path, json={"outbound": None})).json()["outbound"] is None
