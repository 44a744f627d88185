"""Each service's door in each case: good, forged, replayed, too large, broken; bounces and complaints."""

import asyncio
import re
from dataclasses import dataclass
from typing import Any

import pytest

from postroom.external_mailboxes.posts import PROVIDERS
from postroom.external_mailboxes.providers.post import Post
from postroom.limits import FOREIGN_EMAIL_BYTES
from tests.conftest import Server
from tests.connections import provider_posts as made
from tests.connections.provider_posts import MAIL, SECONDS
from tests.connections.test_posts import ResendPeer, connect, post_to, status_of_a_long_post, subjects

pytestmark = pytest.mark.sqlite_alone
KEY = "a key of the service"
OTHER_MAIL = MAIL.replace(b"By HTTP", b"Forged")
DAYS = 24 * 3600


@dataclass(frozen=True)
class App:
    """`broken` are a post and words of the answer, which say what to set at the service."""

    key: str
    good: Post
    forged: list[Post]
    replayed: list[Post]
    broken: list[tuple[Post, str]]
    bounce: Post | None = None
    complaint: Post | None = None


def with_body(post: Post, body: bytes) -> Post:
    return Post(post.headers, post.query, body, post.now)


def plain() -> App:
    return App(
        KEY,
        made.raw(KEY),
        forged=[made.raw(), made.raw("another"), with_body(made.raw(KEY), OTHER_MAIL)],
        replayed=[made.raw(KEY, seconds=SECONDS - 301), made.raw(KEY, seconds=SECONDS + 301)],
        broken=[(made.raw(KEY, body=b" \r\n"), "message/rfc822")],
    )


def mailgun() -> App:
    event = {"event": "failed", "severity": "permanent", "recipient": "bob@example.org"}
    unknown = {"delivery-status": {"code": 550, "message": "5.1.1 user unknown"}}
    complained = {"event": "complained", "recipient": "eve@example.org"}
    no_mail = made.mailgun(KEY, body=b"", token="c" * 50)
    return App(
        KEY,
        made.mailgun(KEY),
        forged=[made.mailgun("another"), made.mailgun(KEY, token=""), made.mailgun_event(event, "another")],
        replayed=[
            made.mailgun(KEY, seconds=SECONDS - 13 * 3600),
            made.mailgun(KEY, OTHER_MAIL),  # with the token of the good one
        ],
        broken=[
            (no_mail, "/mime"),
            (with_body(made.mailgun(KEY), made.mailgun(KEY).body[:-9]), "incomplete"),
        ],
        bounce=made.mailgun_event(event | unknown, KEY),
        complaint=made.mailgun_event(complained, KEY, token="d" * 50),
    )


def sendgrid() -> App:
    bounced = {"event": "bounce", "email": "bob@example.org", "status": "5.1.1", "reason": "user unknown"}
    complained = {"event": "spamreport", "email": "eve@example.org"}
    good = made.sign_for_sendgrid(made.sendgrid())
    return App(
        made.sendgrid_public_key(),
        good,
        forged=[made.sendgrid(), with_body(good, made.sendgrid(OTHER_MAIL).body)],
        replayed=[made.sign_for_sendgrid(made.sendgrid(), SECONDS - 5 * DAYS)],
        broken=[(made.sign_for_sendgrid(made.form_post({"text": b"parsed"})), "raw, full MIME message")],
        bounce=made.sign_for_sendgrid(made.sendgrid_events(bounced)),
        complaint=made.sign_for_sendgrid(made.sendgrid_events(complained)),
    )


def postmark() -> App:
    """Its password is of no time: the id of a mail stands for one content alone."""
    signed = made.postmark(password=KEY).headers
    bounce = made.postmark_report("Bounce", "bob@example.org", "smtp;550 5.1.1 user unknown")
    complaint = made.postmark_report("SpamComplaint", "eve@example.org", "")
    return App(
        KEY,
        made.postmark(password=KEY),
        forged=[made.postmark(), made.postmark(password="guess")],
        replayed=[made.postmark(OTHER_MAIL, password=KEY)],
        broken=[(made.json_post({"TextBody": "parsed"}, signed), "Include raw email content")],
        bounce=Post(signed, {}, bounce.body, bounce.now),
        complaint=Post(signed, {}, complaint.body, complaint.now),
    )


def ses() -> App:
    no_mail = made.ses_received() | {"content": ""}
    complained = {
        "notificationType": "Complaint",
        "complaint": {"complainedRecipients": [{"emailAddress": "eve@example.org"}]},
    }
    good = made.sns(made.ses_received())
    return App(
        made.sns_certificate().decode(),
        good,
        forged=[
            with_body(good, good.body.replace(b"123456789012", b"000000000000")),
            made.json_post({"Type": "Notification", "SignatureVersion": "2"}),
        ],
        replayed=[
            made.sns(made.ses_received(), seconds=SECONDS - 2 * DAYS),
            made.sns(made.ses_received(OTHER_MAIL)),  # with the MessageId of the good one
        ],
        broken=[(made.sns(no_mail, MessageId="none"), "SNS action")],
        bounce=made.sns(made.ses_bounce("bob@example.org", "<1@x>"), MessageId="bounce"),
        complaint=made.sns(complained, MessageId="complaint"),
    )


def resend() -> App:
    secret = made.RESEND_SECRET
    bounced = {
        "type": "email.bounced",
        "data": {"to": ["bob@example.org"], "bounce": {"message": "550 5.1.1 user unknown"}},
    }
    complained = {"type": "email.complained", "data": {"to": ["eve@example.org"]}}
    received = made.resend_received("a1")
    return App(
        secret,
        made.resend(received, secret),
        forged=[made.resend(received), made.resend(received, "whsec_aGVsbG8=")],
        replayed=[
            made.resend(received, secret, SECONDS - 301),
            made.resend(made.resend_received("b2"), secret),  # with the id of the good one
        ],
        broken=[(made.resend({"type": "email.received", "data": {}}, secret, post_id="none"), "email_id")],
        bounce=made.resend(bounced, secret, post_id="bounce"),
        complaint=made.resend(complained, secret, post_id="complaint"),
    )


DOORS = {
    "raw": plain,
    "cloudflare": plain,
    "mailgun": mailgun,
    "sendgrid": sendgrid,
    "postmark": postmark,
    "ses": ses,
    "resend": resend,
}


async def test_each_door_takes_what_is_good_once_and_refuses_all_else_with_a_reason(server: Server) -> None:
    assert set(DOORS) == set(PROVIDERS)
    peer = await asyncio.start_server(ResendPeer().handle, "127.0.0.1", 0)
    api_url = f"http://127.0.0.1:{peer.sockets[0].getsockname()[1]}"
    try:
        for provider, make in DOORS.items():
            inbox_id = await server.new_inbox(f"hello-{provider}")
            more = {"apiKey": "re_1", "apiUrl": api_url} if provider == "resend" else {}
            door = make()
            shown = await connect(server, provider, signingKey=door.key, inboxId=inbox_id, **more)
            await try_mails(server, provider, shown, door)
            assert await subjects(server, inbox_id) == ["By HTTP"], provider
            await try_notices(server, provider, shown["url"], door)
    finally:
        peer.close()


def names_what_to_do(message: str) -> bool:
    """Behind what is wrong, in a sentence of its own."""
    return len(re.findall(r"[.:] [A-Z]|: [a-z]", message)) > 0 and message[-1] in ".?…"


async def try_mails(server: Server, provider: str, shown: dict[str, Any], door: App) -> None:
    url = shown["url"]
    for post in door.forged:
        answer = await post_to(server, url, post)
        assert (answer.status_code, answer.json()["error"]) == (403, "invalid_signature"), provider
        assert names_what_to_do(answer.json()["message"]), answer.json()["message"]
    for _ in range(2):
        answer = await post_to(server, url, door.good)
        assert (answer.status_code, answer.json()) == (200, {"ok": True}), (provider, answer.text)
    for post in door.replayed:
        answer = await post_to(server, url, post)
        assert (answer.status_code, answer.json()["error"]) == (403, "invalid_signature"), provider
        assert names_what_to_do(answer.json()["message"]), answer.json()["message"]
    assert await status_of_a_long_post(url, FOREIGN_EMAIL_BYTES + 1) == b"413", provider
    for post, words in door.broken:
        answer = await post_to(server, url, post)
        assert (answer.status_code, answer.json()["error"]) == (400, "bad_request"), provider
        assert words in answer.json()["message"], provider
        assert names_what_to_do(answer.json()["message"]), answer.json()["message"]
        state = (await server.api.get(f"/v1/connections/{shown['id']}")).json()
        assert (state["state"], words in state["lastError"]) == ("failing", True), provider


async def try_notices(server: Server, provider: str, url: str, door: App) -> None:
    """Of raw and Cloudflare there are none: bounces come as mails."""
    notices = [(door.bounce, "bob@example.org", "bounce"), (door.complaint, "eve@example.org", "complaint")]
    for post, address, kind in notices:
        if post is not None:
            assert (await post_to(server, url, post)).status_code == 200, provider
            listed = (await server.api.get("/v1/suppressions")).json()["data"]
            assert [(each["address"], each["type"]) for each in listed] == [(address, kind)], provider
            assert (await server.api.delete(f"/v1/suppressions/{address}")).status_code == 204
    assert (door.bounce is None) == (provider in ("raw", "cloudflare"))
