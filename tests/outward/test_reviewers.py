"""Reviewers: only the right person decides, by a link or by an answer, and only once."""

import asyncio
import re
import smtplib
from collections.abc import Callable
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from postroom.accounts.rules import approval
from postroom.accounts.rules.approval import Approval
from postroom.inward import review_answers
from postroom.inward.review_answers import ReviewAnswer
from postroom.outward import reviewers
from postroom.storage.database import Tx
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles_dns import ZoneLookup
from tests.mail.test_authenticity import RECORDS, signed
from tests.outbound import message_of, send, settled
from tests.plain_transport import http_client
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

REVIEWER = "boss@there.example"


def set_reviewers(tx: Tx, inbox_id: str, *addresses: str) -> None:
    stored = approval.encode(approval.require_valid(Approval(["always"], reviewers=list(addresses))))
    tx.run("update inboxes set approval = :it where id = :id", it=stored, id=inbox_id)


@pytest.fixture
async def asked(sender: Server, peer: SmtpPeer) -> tuple[str, EmailMessage]:
    """A held message, and the notice that its reviewer got."""
    inbox_id = await sender.new_inbox("bob")
    await sender.resources.db.write(set_reviewers, inbox_id, REVIEWER)
    message_id = await send(sender, inbox_id, "carol@elsewhere.example", body="Buy at https://evil.example/x")
    await until(lambda: len(peer.mails) == 1, "the reviewer is told")
    notice = message_from_bytes(peer.mails[0].raw, policy=policy.default)
    assert isinstance(notice, EmailMessage)
    return message_id, notice


def link_of(notice: EmailMessage) -> str:
    body = notice.get_body(("plain",))
    assert body is not None
    found = re.search(r"http://\S+/review/\S+", body.get_content())
    assert found is not None
    return urlsplit(found[0]).path


async def visit(server: Server, method: str, path: str, **form: str) -> httpx2.Response:
    async with http_client(server.base_url) as anybody:
        return await anybody.request(method, path, data=form or None)


async def hash_of(server: Server, message_id: str) -> str:
    found: str = (await message_of(server, message_id))["hold"]["contentHash"]
    return found


async def state(server: Server, message_id: str) -> str:
    found: str = (await message_of(server, message_id))["hold"]["state"]
    return found


async def test_the_notice_tells_the_whole_mail_and_why_it_waits(
    sender: Server, asked: tuple[str, EmailMessage]
) -> None:
    _, notice = asked
    body = notice.get_body(("plain",))
    assert body is not None
    text = body.get_content()
    assert "always" in text
    assert "| Buy at https://evil.example/x" in text
    assert notice["To"] == REVIEWER
    assert notice["Reply-To"].startswith("review+")
    assert [part.get_filename() for part in notice.iter_attachments()] == ["mail.eml"]


async def test_opening_the_page_decides_nothing_and_its_button_does(
    sender: Server, asked: tuple[str, EmailMessage]
) -> None:
    message_id, notice = asked
    path = link_of(notice)
    for method in ("GET", "HEAD", "GET"):
        answer = await visit(sender, method, path)
        assert answer.status_code == 200
    assert "https://evil.example/x" in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert await state(sender, message_id) == "held"
    seen = await hash_of(sender, message_id)
    done = await visit(sender, "POST", path, decision="approve", content_hash=seen, note="go")
    assert done.status_code == 200
    message = await settled(sender, message_id)
    assert message["hold"]["decidedBy"] == {"type": "reviewer", "id": REVIEWER, "name": REVIEWER}
    again = await visit(sender, "POST", path, decision="reject", content_hash=seen)
    assert again.status_code == 409
    assert (await message_of(sender, message_id))["hold"]["state"] == "approved"


async def test_a_link_that_was_not_signed_or_a_hash_not_seen_decides_nothing(
    sender: Server, asked: tuple[str, EmailMessage]
) -> None:
    message_id, notice = asked
    path = link_of(notice)
    flipped = path[:-1] + ("a" if path[-1] != "a" else "b")
    seen = await hash_of(sender, message_id)
    assert (await visit(sender, "POST", flipped, decision="approve", content_hash=seen)).status_code == 404
    assert (await visit(sender, "GET", "/review/nothing")).status_code == 404
    assert (await visit(sender, "POST", path, decision="approve", content_hash="0" * 64)).status_code == 409
    assert (await visit(sender, "POST", path, decision="", content_hash=seen)).status_code == 400
    assert await state(sender, message_id) == "held"


def answer_to(message_id: str, line: str, **fields: Any) -> ReviewAnswer:
    given = {
        "id": "rva_1",
        "reviewer": REVIEWER,
        "from_address": REVIEWER,
        "is_automated": False,
        "due_at": 0,
        "peer_ip": "192.0.2.1",
        "helo": "x",
        "mail_from": REVIEWER,
        "content": b"",
    }
    return ReviewAnswer(message_id=message_id, first_line=line, **{**given, **fields})


FIRST_LINES = {
    "approve": "approved",
    "APPROVE.": "approved",
    "Reject, too expensive": "rejected",
    "reject": "rejected",
    "I approve": "held",
    "approve this later please": "held",
    "> approve": "held",
    "genehmigt": "held",
    "": "held",
}


async def test_the_first_new_line_decides(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    await sender.resources.db.write(set_reviewers, inbox_id, REVIEWER)
    found = {}
    for number, line in enumerate(FIRST_LINES):
        message_id = await send(sender, inbox_id, "carol@elsewhere.example")
        answer = answer_to(message_id, line, id=f"rva_{number}")
        await sender.resources.db.write(apply_twice, answer, sender.clock.now())
        found[line] = await state(sender, message_id)
    assert found == FIRST_LINES


def apply_twice(tx: Tx, answer: ReviewAnswer, now: int) -> None:
    review_answers.add_all(tx, [answer])
    reviewers.apply_answer(tx, answer, True, "http://x", now)
    assert reviewers.apply_answer(tx, answer, True, "http://x", now) == []


@pytest.mark.both_databases
async def test_an_answer_of_somebody_else_does_not_count(
    sender: Server, asked: tuple[str, EmailMessage]
) -> None:
    message_id, notice = asked
    address = str(notice["Reply-To"])
    mail = f"From: {REVIEWER}\r\nTo: {address}\r\nSubject: Re\r\nMessage-ID: <f@x>\r\n\r\napprove\r\n"
    await sender.deliver_to(mail.encode(), address)

    def waiting(tx: Tx) -> int:
        row = tx.one("select count(*) as total from review_answers")
        return int(row["total"]) if row else 0

    while await sender.resources.db.read(waiting):
        await asyncio.sleep(0.02)
    assert await state(sender, message_id) == "held"
    inbox_id = (await message_of(sender, message_id))["inboxId"]
    listed = (await sender.api.get(f"/v1/inboxes/{inbox_id}/messages?direction=inbound")).json()
    assert listed["total"] == 0


async def test_an_old_answer_does_not_count_for_another_mail(
    sender: Server, asked: tuple[str, EmailMessage], peer: SmtpPeer
) -> None:
    """It is signed, and it says approve; but the signed To names the first one's address."""
    first, notice = asked
    inbox_id = (await message_of(sender, first))["inboxId"]
    second = await send(sender, inbox_id, "carol@elsewhere.example", body="Another")
    head = f"From: ann@sender.test\r\nTo: {notice['Reply-To']}\r\nSubject: Re\r\n\r\napprove\r\n"

    async def counts(message_id: str, content: bytes) -> bool:
        given = {"reviewer": "ann@sender.test", "from_address": "ann@sender.test", "peer_ip": "203.0.113.9"}
        answer = answer_to(message_id, "approve", content=content, **given)
        return await reviewers.is_from_reviewer(sender.resources, ZoneLookup(RECORDS), answer)

    def token(message_id: str) -> Callable[[Tx], str]:
        return lambda tx: reviewers.token_of(tx, message_id, "ann@sender.test")

    old_token = await sender.resources.db.read(token(first))
    new_token = await sender.resources.db.read(token(second))
    mail = re.sub(r"review\+\w+", f"Review+{old_token.upper()}", head).encode()
    assert await counts(first, signed(mail))
    assert not await counts(second, signed(mail))
    readdressed = mail.replace(old_token.upper().encode(), new_token.encode())
    unsigned_to = signed(mail, [b"from", b"subject"]).replace(old_token.upper().encode(), new_token.encode())
    assert not await counts(second, unsigned_to)
    assert not await counts(second, b"To: review+" + new_token.encode() + b"@x.test\r\n" + signed(mail))
    assert await counts(second, signed(readdressed))


async def test_a_note_on_the_page_is_kept_without_what_cannot_be_stored(
    sender: Server, asked: tuple[str, EmailMessage]
) -> None:
    message_id, notice = asked
    seen = await hash_of(sender, message_id)
    done = await visit(
        sender, "POST", link_of(notice), decision="reject", content_hash=seen, note="too\0 dear"
    )
    assert done.status_code == 200
    assert (await message_of(sender, message_id))["hold"]["note"] == "too dear"


async def test_an_answer_from_an_inbox_here_never_counts(
    sender: Server, asked: tuple[str, EmailMessage]
) -> None:
    """Not even if an earlier version took the inbox as reviewer: agents read there."""
    message_id, _ = asked
    given = {"reviewer": "boss@postroom.localhost", "from_address": "boss@postroom.localhost", "peer_ip": ""}
    answer = answer_to(message_id, "approve", mail_from="boss@postroom.localhost", **given)
    assert not await reviewers.is_from_reviewer(sender.resources, ZoneLookup({}), answer)


async def test_mail_to_noreply_is_taken_and_dropped(sender: Server) -> None:
    inbox_id = await sender.new_inbox("bob")
    for name in ("noreply", "NoReply+x"):
        await sender.deliver(b"From: a@example.com\r\nSubject: Hi\r\nMessage-ID: <1@x>\r\n\r\nHi\r\n", name)
    message_id = await send(sender, inbox_id, "noreply@postroom.localhost")
    assert (await settled(sender, message_id))["status"] == "sent"
    both = b"From: a@example.com\r\nSubject: Both\r\nMessage-ID: <2@x>\r\n\r\nHi\r\n"
    await sender.deliver(both, "noreply", "bob")
    event = await sender.next_event()
    while event["event"] != "message.received":
        event = await sender.next_event(event["event_id"])
    assert (event["message"]["subject"], event["inbox_id"]) == ("Both", inbox_id)
    assert (await sender.api.get("/v1/suppressions")).json()["total"] == 0
    with pytest.raises(smtplib.SMTPRecipientsRefused):
        await sender.deliver(both, "nobody")
