"""Mail of a connected inbox leaves through its mailbox's own server; a second relay when one is away."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from postroom.couriers.mail import SmtpCourier
from postroom.couriers.outbound_routing import OutboundRouting
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.connections import Connection, WayOut
from postroom.external_mailboxes.fetching import Fetched
from postroom.external_mailboxes.mailbox_access import OAuthTokens
from postroom.external_mailboxes.sending_through import SendingThrough
from postroom.net.dns import Resolver
from postroom.net.relay import Relay
from postroom.outward.courier import DeliveryError, OutgoingMail, find_relay
from tests.conftest import Server, running_server, settings
from tests.connections.dovecot import PASSWORD, running_dovecot
from tests.connections.test_mailboxes import USER, connect, until_state
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import START, FakeClock
from tests.waiting import until


async def send(server: Server, inbox_id: str) -> None:
    answer = await server.api.post(
        f"/v1/inboxes/{inbox_id}/send",
        json={"to": "bob@example.org", "subject": "Hi", "body": "Hello"},
        headers={"Idempotency-Key": "1"},
    )
    assert answer.status_code == 200, answer.text


async def until_taken(peer: SmtpPeer) -> None:
    await until(lambda: peer.mails)


@pytest.mark.needs("dovecot")
@pytest.mark.sqlite_alone
async def test_it_leaves_through_the_mailbox_and_a_copy_lies_in_sent(server: Server) -> None:
    async with running_dovecot() as dovecot, SmtpPeer(credentials=(USER, PASSWORD)) as peer:
        inbox_id = await server.new_inbox("agent")
        smtp = {"host": "127.0.0.1", "port": peer.port}
        shown = await connect(server, dovecot, inbox_id, smtp=smtp)
        await until_state(server, shown["id"], "live")  # its address counts after the login
        await send(server, inbox_id)
        await until_taken(peer)
        (mail,) = peer.mails
        assert USER.encode() in mail.mail_line
        assert f"From: {USER}".encode() in mail.raw
        await until(lambda: dovecot.mails_of(USER, ".Sent"))
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


@pytest.mark.sqlite_alone
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


class TokenGiver:
    """Answers as the token endpoint of a mail service."""

    def __init__(self, status: int, body: bytes) -> None:
        self.answer = Fetched(status, body)
        self.asked: list[bytes] = []

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 0
    ) -> Fetched:
        self.asked.append(body)
        return self.answer


def mailbox(port: int) -> Connection:
    return Connection(
        id="con_1",
        account_id="acc_1",
        pod_id=None,
        inbox_id="inb_1",
        kind="imap",
        provider="",
        state="live",
        last_error=None,
        last_mail_at=None,
        uid_validity=None,
        last_uid=0,
        created_at=START,
        settings={"username": "a,b@x.y", "address": "a@x.y", "smtp": {"host": "127.0.0.1", "port": port}},
        hidden={
            "oauth": {
                "tokenUrl": "https://x.y/token",
                "clientId": "c",
                "clientSecret": "s",
                "refreshToken": "r",
            }
        },
    )


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("mechanism", ["XOAUTH2", "OAUTHBEARER"])
async def test_with_oauth_it_is_sent_by_a_token_that_is_asked_for_once(
    server: Server, mechanism: str
) -> None:
    answers = TokenGiver(200, b'{"access_token": "t0ken/+", "expires_in": 3600}')
    through = SendingThrough(server.resources, OAuthTokens(server.resources, answers))
    async with SmtpPeer(credentials=("a,b@x.y", "t0ken/+"), features=(f"AUTH {mechanism}",)) as peer:
        inbox = await server.new_inbox("agent")
        account_id = (await server.api.get("/v1/me")).json()["accountId"]
        stored = replace(mailbox(peer.port), account_id=account_id, inbox_id=inbox)
        await server.resources.db.write(connections.add, stored)
        found = await server.resources.db.read(connections.find_way_out, {"connection_id": "con_1"})
        courier = OutboundRouting([], make_courier, server.resources.resolver, allow_private=True)
        for _ in range(2):
            mail = mail_by(await find_relay(through, found))
            receipt = await courier.deliver(mail)
            assert receipt.code == 250
        await courier.close()
        assert len(answers.asked) == 1
        assert len(peer.mails) == 2


@pytest.mark.sqlite_alone
async def test_a_token_that_is_refused_is_told_and_tried_again(server: Server) -> None:
    answers = TokenGiver(400, b'{"error": "invalid_grant"}')
    through = SendingThrough(server.resources, OAuthTokens(server.resources, answers))
    inbox = await server.new_inbox("agent")
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    await server.resources.db.write(
        connections.add, replace(mailbox(25), account_id=account_id, inbox_id=inbox)
    )
    with pytest.raises(DeliveryError, match="invalid_grant") as refusal:
        await find_relay(through, WayOut("", "con_1", needs_token=True))
    assert not refusal.value.permanent


@pytest.mark.sqlite_alone
async def test_a_wrong_token_is_refused_in_its_second_answer() -> None:
    async with SmtpPeer(credentials=("a", "right"), features=("AUTH XOAUTH2",)) as peer:
        courier = make_courier(Relay("127.0.0.1", peer.port, "a", "wrong", has_token=True))
        with pytest.raises(DeliveryError, match="535"):
            await courier.deliver(mail_by(""))
        await courier.close()


def make_courier(relay: Relay | None) -> SmtpCourier:
    return SmtpCourier(Resolver(), own_name="postroom.localhost", relay=relay, allow_private=True)


def mail_by(outbound: str) -> OutgoingMail:
    return OutgoingMail(
        "a@x.y", "bob@example.org", b"Subject: Hi\r\n\r\nHello\r\n", "example.org", 0, outbound
    )


@pytest.mark.sqlite_alone
async def test_a_relay_in_a_forbidden_network_is_refused_when_it_is_set(tmp_path: Path) -> None:
    config = replace(settings(tmp_path), allow_private=False)
    async with running_server(config, FakeClock()) as server:
        pod = (await server.api.get("/v1/pods")).json()["data"][0]["id"]
        for relay in ("smtp://127.0.0.1:25", "smtps://a:b@[::1]:465", "smtp://10.0.0.1"):
            for answer in (
                await server.api.patch(f"/v1/pods/{pod}", json={"outbound": relay}),
                await server.api.post("/v1/pods", json={"name": "new", "outbound": relay}),
            ):
                assert (answer.status_code, answer.json()["error"]) == (422, "invalid_target"), relay
