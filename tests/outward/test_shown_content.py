"""Whoever decides sees all that the content hash covers: of a draft, an approval, a review, in a notice."""

import html
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import msgspec
import pytest

from postroom.mailbox import holds, raw_mails
from postroom_mail.writing.content_hash import Content, content_hash, read_content
from tests.api.test_dashboard import signed_in
from tests.conftest import Server
from tests.couriers.smtp_peer import SmtpPeer
from tests.outward.test_reviewers import REVIEWER, link_of, set_reviewers, visit
from tests.raw_mails import raw_mail
from tests.waiting import until

pytestmark = pytest.mark.sqlite_alone

HIDDEN, COMMENT, TRACKER = "words that no reader sees", "said in a comment", "https://tracker.example/p.png"
FULL: dict[str, Any] = {
    "to": ["Carol <carol@elsewhere.example>"],
    "cc": ["dan@elsewhere.example"],
    "bcc": ["Eve <eve@elsewhere.example>"],
    "replyTo": "collector@postroom.localhost",
    "headers": {"X-Campaign": "spring <&> sale", "x-small": "a name in small letters"},
    "body": "The plain\u200b words & nothing <else>",
    "bodyHtml": f"<p>Quite other words</p><p style='display:none'>{HIDDEN}</p><!-- {COMMENT} -->"
    f"<a href='http:evil.example/take'>bank.example</a><img src='{TRACKER}'>",
    "attachments": [{"filename": "offer.pdf", "contentType": "application/pdf", "data": "JVBERi0x"}],
    "includeQuote": False,
}


@pytest.fixture
async def places(sender: Server, peer: SmtpPeer) -> tuple[Content, dict[str, str], EmailMessage]:
    """The content of a held mail, the text of every place that shows it, and the notice."""
    inbox_id = await sender.new_inbox("bob")
    await sender.new_inbox("collector")
    await sender.resources.db.write(set_reviewers, inbox_id, REVIEWER)
    await sender.deliver(raw_mail(subject="Question", message_id="<first@example.com>"), "bob")
    fields = {**FULL, "threadId": (await sender.next_event())["thread_id"]}
    drafts = f"/v1/inboxes/{inbox_id}/drafts"
    draft_id = (await sender.api.post(drafts, json=fields)).json()["id"]
    async with signed_in(sender) as page:
        draft = await page.get(f"/app/drafts/{draft_id}")
        draft_html = await page.get(f"/app/drafts/{draft_id}/html")
        sent = await sender.api.post(f"/v1/drafts/{draft_id}/send", headers={"Idempotency-Key": "k"})
        assert sent.status_code == 200, sent.text
        approvals = await page.get("/app/approvals")
    await until(lambda: len(peer.mails) == 1, "the reviewer is told")
    notice = message_from_bytes(peer.mails[0].raw, policy=policy.default)
    assert isinstance(notice, EmailMessage)
    review = await visit(sender, "GET", link_of(notice))
    framed = await visit(sender, "GET", f"{link_of(notice)}/html")
    for shown in (draft_html, framed):
        assert "Quite other words" in shown.text
        assert "sandbox" in shown.headers["Content-Security-Policy"]
    message_id = sent.json()["id"]
    hold = await sender.resources.db.read(holds.find, message_id)
    assert hold is not None
    raw = await raw_mails.read(sender.resources, message_id, with_trace=False)
    assert content_hash(raw, hold.bcc) == hold.content_hash
    body = notice.get_body(("plain",))
    assert body is not None
    texts = {
        "draft": html.unescape(draft.text),
        "approvals": html.unescape(approvals.text),
        "review": html.unescape(review.text),
        "notice": body.get_content(),
    }
    return read_content(raw, hold.bcc), texts, notice


def pieces(value: Any) -> list[str]:
    """Every text inside of a field."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = value.values() if "sha256" in value else [*value, *value.values()]
    return [piece for each in value for piece in pieces(each)]


async def test_every_field_of_the_hash_is_shown_in_every_place(
    places: tuple[Content, dict[str, str], EmailMessage],
) -> None:
    content, texts, notice = places
    fields: dict[str, Any] = msgspec.to_builtins(content)
    assert all(fields.values()), "a field that is empty would be found anywhere"
    marked = {**fields, "bodyText": fields["bodyText"].replace("\u200b", "⟨U+200B⟩")}
    for place, text in texts.items():
        wanted = marked if place != "notice" else {**marked, "bodyHtml": []}
        unseen = {
            name: piece for name, value in wanted.items() for piece in pieces(value) if piece not in text
        }
        assert unseen == {}, place
    [attached] = notice.iter_attachments()
    mail = message_from_bytes(attached.get_content(), policy=policy.default)
    assert isinstance(mail, EmailMessage)
    part = mail.get_body(("html",))
    assert part is not None
    assert part.get_content().strip() == content.body_html


async def test_what_the_html_says_hides_and_leads_to_is_shown_in_every_place(
    places: tuple[Content, dict[str, str], EmailMessage],
) -> None:
    content, texts, _ = places
    for place, text in texts.items():
        told = text.replace(content.body_html, "")  # not by its source alone
        for wanted in (
            "Quite other words",
            HIDDEN,
            COMMENT,
            "http:evil.example/take",
            "bank.example",
            TRACKER,
        ):
            assert wanted in told, (place, wanted)
        assert "8 bytes" in told or "6 bytes" in told, place
