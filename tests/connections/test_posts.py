"""Mail services post to a server: stored once, refused with a reason, bounces with their effect."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest

from postroom.accounts.scope import Scope
from postroom.errors import InvalidSignature, Unavailable
from postroom.external_mailboxes import connections
from postroom.external_mailboxes.fetching import Fetched, FetchError
from postroom.external_mailboxes.posts import PostIntake
from postroom.external_mailboxes.providers.post import Post
from postroom.inward.receive import AT_ONCE_BYTES, OwnReader
from postroom.limits import FOREIGN_EMAIL_BYTES
from postroom.queue import deliveries
from tests.conftest import Server
from tests.connections import provider_posts as made
from tests.connections.provider_posts import MAIL
from tests.plain_transport import http_client

KEY = "a key of the service"


class RecordingFetcher:
    """Answers what it was told to, and remembers what it was asked."""

    def __init__(self, answers: dict[str, Fetched]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def fetch(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"", limit: int = 0
    ) -> Fetched:
        self.asked.append(url)
        if url not in self.answers:
            raise FetchError("No answer.")
        return self.answers[url]


async def connect(server: Server, provider: str, **more: str) -> dict[str, Any]:
    answer = await server.api.post("/v1/connections", json={"kind": "http", "provider": provider, **more})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def post_to(server: Server, url: str, post: Post) -> httpx2.Response:
    async with http_client() as stranger:
        return await stranger.post(url, content=post.body, headers=post.headers, params=post.query)


async def subjects(server: Server, inbox_id: str) -> list[str]:
    page = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()
    return [each["subject"] for each in page["data"]]


@pytest.mark.sqlite_alone
async def test_each_service_brings_a_mail_once_however_often_it_posts(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    posts = {
        "raw": (made.raw(KEY, MAIL.replace(b"By HTTP", b"raw")), KEY),
        "cloudflare": (made.raw(KEY, MAIL.replace(b"By HTTP", b"cloudflare")), KEY),
        "mailgun": (made.mailgun(KEY, MAIL.replace(b"By HTTP", b"mailgun")), KEY),
        "sendgrid": (
            made.sign_for_sendgrid(made.sendgrid(MAIL.replace(b"By HTTP", b"sendgrid"))),
            made.sendgrid_public_key(),
        ),
        "postmark": (made.postmark(MAIL.replace(b"By HTTP", b"postmark"), password=KEY), KEY),
        "ses": (
            made.sns(made.ses_received(MAIL.replace(b"By HTTP", b"ses"))),
            made.sns_certificate().decode(),
        ),
    }
    for provider, (post, key) in posts.items():
        connection = await connect(server, provider, signingKey=key)
        for _ in range(2):
            answer = await post_to(server, connection["url"], post)
            assert (answer.status_code, answer.json()) == (200, {"ok": True}), provider
        shown = (await server.api.get(f"/v1/connections/{connection['id']}")).json()
        assert (shown["state"], shown["lastError"], "url" in shown) == ("live", None, False)
        assert shown["lastMailAt"]
        assert (await server.api.post(f"/v1/connections/{connection['id']}/test")).json()["ok"]
    assert sorted(await subjects(server, inbox_id)) == sorted(posts)


@pytest.mark.sqlite_alone
async def test_a_mail_without_a_message_id_posted_twice_is_one(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    url = (await connect(server, "raw"))["url"]
    post = made.raw(body=b"From: a@example.com\r\nSubject: nameless\r\n\r\nHello")
    for _ in range(2):
        assert (await post_to(server, url, post)).status_code == 200
    assert await subjects(server, inbox_id) == ["nameless"]


@pytest.mark.sqlite_alone
async def test_what_is_wrong_with_a_post_is_said(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    connection = await connect(server, "mailgun", signingKey=KEY)
    url = connection["url"]
    wrong = {
        "invalid_signature": (made.mailgun("another"), 403),
        "unknown_recipient": (made.mailgun(KEY, recipient="nobody@postroom.localhost"), 422),
        "bad_request": (made.form_post({"timestamp": b"1"}), 403),
    }
    for word, (post, status) in wrong.items():
        answer = await post_to(server, url, post)
        assert answer.status_code == status, (word, answer.text)
    unsigned = (await connect(server, "mailgun"))["url"]
    broken = await post_to(server, unsigned, made.form_post({"body-plain": b"x"}))
    assert (broken.status_code, broken.json()["error"]) == (400, "bad_request")
    assert "/mime" in broken.json()["message"]
    assert (await post_to(server, url[:-9] + "x/mime", made.mailgun(KEY))).status_code == 404
    async with http_client() as stranger:
        assert (await stranger.get(url)).status_code == 405
    assert await status_of_a_long_post(url, FOREIGN_EMAIL_BYTES + 1) == b"413"
    assert await subjects(server, inbox_id) == []


async def status_of_a_long_post(url: str, declared: int) -> bytes:
    """Answered by its head alone."""
    parts = httpx2.URL(url)
    reader, writer = await asyncio.open_connection(parts.host, parts.port)
    writer.write(f"POST {parts.path} HTTP/1.1\r\nHost: x\r\nContent-Length: {declared}\r\n\r\n".encode())
    status = (await reader.readline()).split()[1]
    writer.close()
    return status


@pytest.mark.sqlite_alone
async def test_a_token_of_mailgun_stands_for_one_content_alone(server: Server) -> None:
    """Its signature does not cover the mail: whoever saw one could post what he likes with it."""
    inbox_id = await server.new_inbox("hello")
    url = (await connect(server, "mailgun", signingKey=KEY))["url"]
    assert (await post_to(server, url, made.mailgun(KEY))).status_code == 200
    replayed = await post_to(server, url, made.mailgun(KEY, MAIL.replace(b"By HTTP", b"Forged")))
    assert (replayed.status_code, replayed.json()["error"]) == (403, "invalid_signature")
    assert await subjects(server, inbox_id) == ["By HTTP"]


@pytest.mark.sqlite_alone
async def test_a_connection_reaches_its_own_inboxes_alone(server: Server) -> None:
    """Not those of another pod, and with an inbox of its own that one, whoever is addressed."""
    inbox_id = await server.new_inbox("hello")
    pod = (await server.api.post("/v1/pods", json={"clientId": "other"})).json()["id"]
    foreign = (await connect(server, "raw", podId=pod))["url"]
    assert (await post_to(server, foreign, made.raw())).status_code == 422
    own = (await connect(server, "raw", inboxId=inbox_id))["url"]
    assert (await post_to(server, own, made.raw(recipient="any@elsewhere.example"))).status_code == 200
    assert await subjects(server, inbox_id) == ["By HTTP"]


@pytest.mark.sqlite_alone
async def test_recipients_are_those_of_the_header_where_none_are_named(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    url = (await connect(server, "raw"))["url"]
    assert (await post_to(server, url, Post({}, {}, MAIL, 0))).status_code == 200
    named = Post({}, {"to": "hello+tag@POSTROOM.localhost, x@y.example"}, MAIL.replace(b"By", b"In"), 0)
    assert (await post_to(server, url, named)).status_code == 200
    assert sorted(await subjects(server, inbox_id)) == ["By HTTP", "In HTTP"]


async def test_a_bounce_and_a_complaint_that_a_service_reports_take_effect(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    sent = (
        await server.api.post(
            f"/v1/inboxes/{inbox_id}/send",
            json={"to": "bob@example.org", "subject": "Hi", "body": "Hello"},
            headers={"Idempotency-Key": "1"},
        )
    ).json()
    await server.resources.db.write(as_if_sent, sent["id"])
    url = (await connect(server, "ses", signingKey=made.sns_certificate().decode()))["url"]
    bounce = made.sns(made.ses_bounce("bob@example.org", sent["providerMessageId"]))
    for _ in range(2):
        assert (await post_to(server, url, bounce)).status_code == 200
    events = (await server.api.get("/v1/events?limit=100")).json()["data"]
    assert [event["event"] for event in events if event["event"] == "message.bounced"] == ["message.bounced"]
    postmark = (await connect(server, "postmark"))["url"]
    complaint = made.postmark_report("SpamComplaint", "Eve@example.org", "")
    assert (await post_to(server, postmark, complaint)).status_code == 200
    listed = (await server.api.get("/v1/suppressions")).json()["data"]
    assert {(each["address"], each["type"]) for each in listed} == {
        ("bob@example.org", "bounce"),
        ("eve@example.org", "complaint"),
    }


def as_if_sent(tx: Any, message_id: str) -> None:
    (delivery,) = deliveries.list_of_message(tx, message_id)
    tx.run("update deliveries set state = 'delivered' where id = :id", id=delivery.id)
    deliveries.settle(tx, message_id)


def intake(server: Server, answers: dict[str, Fetched]) -> tuple[PostIntake, RecordingFetcher]:
    fetcher = RecordingFetcher(answers)
    return PostIntake(server.resources, OwnReader(AT_ONCE_BYTES), fetcher), fetcher


async def stored(server: Server, shown: dict[str, Any]) -> connections.Connection:
    account_id = (await server.api.get("/v1/me")).json()["accountId"]
    return await server.resources.db.read(connections.get, Scope(account_id), shown["id"])


@pytest.mark.sqlite_alone
async def test_ses_is_taken_up_by_its_handshake_and_bound_to_its_topic(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    shown = await connect(server, "ses")
    posts, fetcher = intake(
        server,
        {
            made.CERTIFICATE_URL: Fetched(200, made.sns_certificate()),
            made.SUBSCRIBE_URL: Fetched(200, b"<ConfirmSubscriptionResponse/>"),
        },
    )
    await posts.take(await stored(server, shown), made.sns("…", "SubscriptionConfirmation"))
    assert fetcher.asked == [made.CERTIFICATE_URL, made.SUBSCRIBE_URL]
    assert (await stored(server, shown)).settings["topic"] == made.TOPIC
    mail = made.sns(made.ses_received(), MessageId="another")
    await posts.take(await stored(server, shown), mail)
    assert await subjects(server, inbox_id) == ["By HTTP"]
    assert fetcher.asked.count(made.CERTIFICATE_URL) == 1
    stranger = made.sns(made.ses_received(), MessageId="third", TopicArn=f"{made.TOPIC}-of-another")
    with pytest.raises(InvalidSignature, match="another topic"):
        await posts.take(await stored(server, shown), stranger)


@pytest.mark.sqlite_alone
async def test_a_certificate_that_cannot_be_fetched_is_asked_for_again(server: Server) -> None:
    shown = await connect(server, "ses")
    posts, fetcher = intake(server, {made.CERTIFICATE_URL: Fetched(503, b"")})
    for _ in range(2):
        with pytest.raises(Unavailable):
            await posts.take(await stored(server, shown), made.sns(made.ses_received()))
    assert fetcher.asked == [made.CERTIFICATE_URL] * 2


class ResendPeer:
    """Resend's interface on loopback: a mail by its id, with the URL of its bytes."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        host = next(line[6:] for line in head.split("\r\n") if line.lower().startswith("host: "))
        self.keys += [line[15:] for line in head.split("\r\n") if line.lower().startswith("authorization")]
        answer = MAIL
        if head.startswith("GET /emails/receiving/a1 "):
            answer = b'{"id": "a1", "raw": {"download_url": "http://%s/raw/a1"}}' % host.encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)
        await writer.drain()
        writer.close()


@pytest.mark.sqlite_alone
async def test_a_mail_of_resend_is_fetched_with_its_key(server: Server) -> None:
    inbox_id = await server.new_inbox("hello")
    peer = ResendPeer()
    listening = await asyncio.start_server(peer.handle, "127.0.0.1", 0)
    api_url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    shown = await connect(server, "resend", apiKey="re_1", apiUrl=api_url, signingKey=made.RESEND_SECRET)
    post = made.resend(made.resend_received("a1"), made.RESEND_SECRET)
    assert (await post_to(server, shown["url"], post)).status_code == 200
    listening.close()
    assert await subjects(server, inbox_id) == ["By HTTP"]
    assert peer.keys == ["Bearer re_1"]  # and none to the host of the bytes
    raw = (await server.api.get(f"/v1/inboxes/{inbox_id}/messages")).json()["data"][0]
    assert (await server.api.get(f"/v1/messages/{raw['id']}/raw")).content.endswith(MAIL)


@pytest.mark.sqlite_alone
async def test_an_account_has_so_many_connections(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "LIMIT", 1)
    await connect(server, "raw")
    refused = await server.api.post("/v1/connections", json={"kind": "http", "provider": "raw"})
    assert (refused.status_code, refused.json()["error"]) == (422, "connection_limit_reached")


@pytest.mark.sqlite_alone
async def test_a_connection_is_made_changed_and_deleted_by_those_who_may(server: Server) -> None:
    missing = await server.api.post("/v1/connections", json={"kind": "http"})
    assert (missing.status_code, missing.json()["field"]) == (400, "provider")
    for provider, more, field in (
        ("resend", {}, "apiKey"),
        ("ses", {"signingKey": "no PEM"}, "signingKey"),
        ("raw", {"inboxId": "inb_" + "0" * 32}, "inboxId"),
    ):
        answer = await server.api.post("/v1/connections", json={"kind": "http", "provider": provider, **more})
        assert (answer.status_code, answer.json()["field"]) == (400, field)
    shown = await connect(server, "raw")
    assert shown["url"].startswith(f"{server.base_url}/inbound/")
    path = f"/v1/connections/{shown['id']}"
    assert not (await server.api.post(f"{path}/test")).json()["ok"]
    changed = (await server.api.patch(path, json={"signingKey": KEY})).json()
    assert (changed["signed"], KEY in str(changed)) == (True, False)
    await server.new_inbox("hello")
    assert (await post_to(server, shown["url"], made.raw())).status_code == 403
    pod = (await server.api.post("/v1/pods", json={})).json()["id"]
    token = (await server.api.post(f"/v1/pods/{pod}/api-keys", json={})).json()["token"]
    async with server.client(token) as other:
        assert (await other.get(path)).status_code == 404
        assert (await other.get("/v1/connections")).json() == {"data": [], "total": 0}
    assert (await server.api.get("/v1/connections")).json()["total"] == 1
    assert (await server.api.delete(path)).status_code == 204
    assert (await post_to(server, shown["url"], made.raw(KEY))).status_code == 404
    actions = [each["action"] for each in (await server.api.get("/v1/audit")).json()["data"]]
    assert {"connection.created", "connection.changed", "connection.deleted"} <= set(actions)
