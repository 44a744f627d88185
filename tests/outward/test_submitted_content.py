"""An email of a mail client is composed anew: only what rules, contentHash and approvers saw is sent."""

import asyncio
import base64
import html
import re
import smtplib
from collections.abc import AsyncIterator
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import msgspec
import pytest

from postroom.clock import MINUTE
from postroom.errors import BadRequest
from postroom.mailbox import holds, raw_mails
from postroom.mailbox.inboxes import Inbox
from postroom.outward.raw_submission import submitted_mail
from postroom_mail.html.text import html_to_text
from postroom_mail.mime import headers
from postroom_mail.mime.parse import ParsedMail, parse_mail
from postroom_mail.writing import compose
from postroom_mail.writing.content_hash import read_content
from tests.api.test_dashboard import signed_in
from tests.conftest import Server, running_server, settings
from tests.couriers.smtp_peer import SmtpPeer
from tests.doubles import FakeClock
from tests.outbound import message_of, relay_to, settled
from tests.waiting import until

OWN = "agent@postroom.localhost"
HEAD = f"From: The Agent <{OWN}>\r\nTo: Bob <bob@there.example>\r\nSubject: Plan\r\nMIME-Version: 1.0\r\n"

# Each carries a word of its own; FIELD stands for it.
FIELDS = [
    "Subject: second FIELD",
    "Sender: FIELD <ceo@bank.example>",
    "Resent-From: FIELD@bank.example",
    "Resent-To: FIELD@bank.example",
    "Resent-Sender: FIELD@bank.example",
    "Resent-Date: Mon, 16 Nov 2026 10:00:00 +0000 (FIELD)",
    "Resent-Message-ID: <FIELD@bank.example>",
    "Resent-Cc: FIELD@bank.example",
    "Resent-Bcc: FIELD@bank.example",
    "Bcc: FIELD@bank.example",
    "Reply-To: FIELD <replies@there.example>",
    "Cc: FIELD <carol@there.example>",
    "Disposition-Notification-To: FIELD@bank.example",
    "Disposition-Notification-Options: FIELD",
    "Return-Receipt-To: FIELD@bank.example",
    "Return-Path: <FIELD@bank.example>",
    "Errors-To: FIELD@bank.example",
    "List-Unsubscribe: <https://FIELD.example/out>",
    "List-Unsubscribe-Post: FIELD",
    "List-Id: FIELD <list.bank.example>",
    "List-Post: <mailto:FIELD@bank.example>",
    "List-Help: <https://FIELD.example>",
    "List-Archive: <https://FIELD.example>",
    "Authentication-Results: FIELD.example; dkim=pass",
    "ARC-Seal: i=1; d=FIELD.example",
    "ARC-Message-Signature: i=1; d=FIELD.example",
    "ARC-Authentication-Results: i=1; FIELD.example",
    "DKIM-Signature: v=1; d=FIELD.example",
    "Received: from FIELD.example by there.example",
    "Received-SPF: pass FIELD",
    "Delivered-To: FIELD@bank.example",
    "Comments: FIELD",
    "Keywords: FIELD",
    "Organization: FIELD",
    "User-Agent: FIELD",
    "Importance: FIELD",
    "Priority: FIELD",
    "Precedence: FIELD",
    "Auto-Submitted: auto-generated; why=FIELD",
    "Thread-Topic: FIELD",
    "Thread-Index: FIELD",
    "Autocrypt: addr=FIELD@bank.example",
    "Content-Language: FIELD",
    "Content-Description: FIELD",
    "Content-Location: https://FIELD.example",
    "Content-Base: https://FIELD.example",
    "Content-ID: <FIELD@bank.example>",
    "Date: Mon, 16 Nov 2026 10:00:00 +0100 (FIELD)",
    "References: <FIELD@earlier.example>",
    "In-Reply-To: <FIELD@earlier.example>",
    "X-Mailer: FIELD",
    "x-lower-case: FIELD",
    "X-Mailer: second FIELD",
    "X-Confirm-Reading-To: FIELD@bank.example",
    "Newsgroups: FIELD",
    "Followup-To: FIELD",
    "Expires: FIELD",
    "Original-Recipient: rfc822;FIELD@bank.example",
]
NAMES = [f"hidden{number}word" for number in range(len(FIELDS))]

LINK = "https://hidden.example/take"
CODED = base64.b64encode(f"<a href='{LINK}'>x</a>".encode()).decode()
UU = "begin 644 take.exe\r\n#0V%T\r\n`\r\nend\r\n"
ICS = (
    "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:1@x\r\nDTSTAMP:20261116T100000Z\r\n"
    "DTSTART:20261120T100000Z\r\nSUMMARY:Talk\r\nURL:" + LINK + "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


def part(kind: str, body: str, *fields: str) -> str:
    return "\r\n".join((f"Content-Type: {kind}", *fields, "", body))


def parts(kind: str, *children: str, parameters: str = "") -> str:
    inside = "".join(f"--b\r\n{child}\r\n" for child in children)
    return f"Content-Type: multipart/{kind}; boundary=b{parameters}\r\n\r\n{inside}--b--\r\n"


PLAIN, HTML = part("text/plain", "Hello"), part("text/html", "<p>Hello</p>")
HIDDEN_PARTS = {
    "a first HTML": parts("alternative", PLAIN, part("text/html", f"<a href='{LINK}'>x</a>"), HTML),
    "a first text": parts("alternative", part("text/plain", f"See {LINK}"), PLAIN, HTML),
    "a last HTML": parts("alternative", PLAIN, HTML, part("text/html", f"<a href='{LINK}'>x</a>")),
    "encoded HTML": parts(
        "alternative", part("text/html", CODED, "Content-Transfer-Encoding: base64"), PLAIN, HTML
    ),
    "enriched text": parts("alternative", PLAIN, part("text/enriched", f"<bold>{LINK}</bold>"), HTML),
    "AMP": parts("alternative", PLAIN, part("text/x-amp-html", f"<html amp4email><a href='{LINK}'>"), HTML),
    "a watch's HTML": parts("alternative", PLAIN, part("text/watch-html", f"<a href='{LINK}'>"), HTML),
    "rich text": parts("alternative", PLAIN, part("text/rtf", f"{{\\rtf1 {LINK}}}"), HTML),
    "a calendar": parts("alternative", PLAIN, part("text/calendar; method=REQUEST", ICS)),
    "a calendar file": parts("mixed", PLAIN, part('application/ics; name="a.ics"', ICS)),
    "a file elsewhere": parts(
        "mixed", PLAIN, part(f'message/external-body; access-type=URL; URL="{LINK}"', "Content-Type: x/y\r\n")
    ),
    "an email inside": parts("mixed", PLAIN, part("message/rfc822", f"Subject: x\r\n\r\n{LINK}")),
    "uuencode": part("text/plain", f"Hello\r\n\r\n{UU}"),
    "a data URL": part("text/html", f"<p>Hello</p><img src='data:image/png;base64,{CODED}'>"),
    "a second boundary": parts(
        "mixed", PLAIN, parameters=f"; boundary=c\r\n\r\n--c\r\n{part('text/html', LINK)}\r\n--c--\r\n"
    ),
    "a preamble": parts("mixed", PLAIN, parameters=f"\r\n\r\n{LINK}\r\n"),
    "an epilogue": parts("mixed", PLAIN) + f"\r\n{LINK}\r\n",
    "a second name": parts(
        "mixed",
        PLAIN,
        part(f'text/csv; name="{LINK}"', "1,2", 'Content-Disposition: attachment; filename="a.csv"'),
    ),
    "a field of a part": parts("mixed", part("text/plain", "Hello", f"Content-Location: {LINK}"), HTML),
    "a description": parts("mixed", PLAIN, part("image/png", "x", f"Content-Description: {LINK}")),
    "a charset": parts("mixed", PLAIN, part("text/csv; charset=hidden.example", "1,2")),
}


@pytest.fixture
async def server(
    database_url: str, tmp_path: Path, clock: FakeClock, peer: SmtpPeer
) -> AsyncIterator[Server]:
    config = settings(
        tmp_path,
        DATABASE_URL=database_url,
        SUBMISSION="127.0.0.1:0",
        PLAN="developer",
        OUTBOUND=relay_to(peer),
    )
    async with running_server(config, clock) as running:
        yield running


async def new_key(server: Server, inbox_id: str) -> dict[str, str]:
    """Of the agent: the key that sent an email cannot approve it."""
    made = await server.api.post(f"/v1/inboxes/{inbox_id}/api-keys", json={"name": "client"})
    key: dict[str, str] = made.json()
    return key


async def submit(server: Server, raw: bytes, token: str = "") -> tuple[int, str]:
    def hand_over() -> tuple[int, str]:
        assert server.submission_port is not None
        with smtplib.SMTP("127.0.0.1", server.submission_port, timeout=120) as smtp:
            smtp.login(OWN, token or server.token)
            smtp.mail(OWN)
            assert smtp.rcpt("bob@there.example")[0] == 250
            code, words = smtp.data(raw)
            return code, words.decode()

    server.clock.turn(MINUTE)
    return await asyncio.to_thread(hand_over)


async def require_approval(server: Server, inbox_id: str, *when: str) -> None:
    answer = await server.api.patch(f"/v1/inboxes/{inbox_id}", json={"approval": {"when": list(when)}})
    assert answer.status_code == 200, answer.text


async def newest(server: Server, inbox_id: str) -> dict[str, Any]:
    listed = await server.api.get(f"/v1/inboxes/{inbox_id}/messages", params={"direction": "outbound"})
    return await message_of(server, max(listed.json()["data"], key=lambda each: each["createdAt"])["id"])


async def held_content(server: Server, message_id: str) -> tuple[str, str]:
    """The text of the approval page, and the JSON that contentHash is made of."""
    hold = await server.resources.db.read(holds.find, message_id)
    assert hold is not None
    raw = await raw_mails.read(server.resources, message_id, with_trace=False)
    content = read_content(raw, hold.bcc)
    async with signed_in(server) as page:
        shown = await page.get("/app/approvals", params={"message": message_id})
    return html.unescape(shown.text), msgspec.json.encode(content).decode()


async def approve(server: Server, message_id: str) -> None:
    seen = (await message_of(server, message_id))["hold"]["contentHash"]
    answer = await server.api.post(f"/v1/messages/{message_id}/approve", json={"contentHash": seen})
    assert answer.status_code == 200, answer.text


def read(raw: bytes) -> EmailMessage:
    mail = message_from_bytes(raw, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    return mail


def everything(raw: bytes) -> str:
    """All that any reader could find: the source, every field and every decoded part."""
    found = [raw.decode(errors="replace")]
    for each in message_from_bytes(raw).walk():
        found += [f"{name}: {value}" for name, value in each.items()]
        content = each.get_payload(decode=True)
        found += [content.decode(errors="replace")] if isinstance(content, bytes) else []
    return "\n".join(found)


@pytest.mark.sqlite_alone
async def test_a_header_field_is_in_the_hash_and_on_the_page_or_it_is_not_sent(
    server: Server, peer: SmtpPeer
) -> None:
    inbox_id = await server.new_inbox("agent")
    await require_approval(server, inbox_id, "always")
    given = "".join(f"{each.replace('FIELD', name)}\r\n" for each, name in zip(FIELDS, NAMES, strict=True))
    raw = f"{HEAD}{given}Message-ID: <1@client>\r\n\r\nHello\r\n".encode()
    code, words = await submit(server, raw, (await new_key(server, inbox_id))["token"])
    assert (code, words[:12]) == (250, "2.0.0 held: "), words
    message = await newest(server, inbox_id)
    page, content = await held_content(server, message["id"])
    await approve(server, message["id"])
    assert (await settled(server, message["id"]))["status"] == "sent"
    (mail,) = peer.mails
    on_the_wire = everything(mail.raw)
    leaves = [name for name in NAMES if name in on_the_wire]
    unseen = [FIELDS[NAMES.index(name)] for name in leaves if name not in page or name not in content]
    assert unseen == []
    kept = {FIELDS[NAMES.index(name)].partition(":")[0].lower() for name in leaves}
    assert kept == {
        "reply-to",
        "cc",
        "references",
        "in-reply-to",
        "x-mailer",
        "x-lower-case",
        "x-confirm-reading-to",
    }
    written = read(mail.raw)
    assert len(written.keys()) == len({name.lower() for name in written}), "each field once"
    assert (written["Date"], written["Message-ID"]) == ("Mon, 16 Nov 2026 10:00:00 +0100", "<1@client>")
    assert written["Auto-Submitted"] == "auto-replied"
    assert "Auto-Submitted" in page
    stored = (await server.api.get(f"/v1/messages/{message['id']}/raw")).content
    assert mail.raw.endswith(stored), "what is stored is what was sent"


@pytest.mark.sqlite_alone
async def test_a_hidden_part_is_held_by_a_rule_and_shown_or_it_is_not_sent(
    server: Server, peer: SmtpPeer
) -> None:
    inbox_id = await server.new_inbox("agent")
    await require_approval(server, inbox_id, "links", "attachments")
    token = (await new_key(server, inbox_id))["token"]
    for number, (name, body) in enumerate(HIDDEN_PARTS.items()):
        raw = f"{HEAD}Message-ID: <{number}@client>\r\n{body}".encode()
        code, words = await submit(server, raw, token)
        assert code == 250, (name, words)
        message = await newest(server, inbox_id)
        assert message["rfcMessageId"] == f"<{number}@client>"
        if words.startswith("2.0.0 held: "):
            page, content = await held_content(server, message["id"])
            await approve(server, message["id"])
            seen = page + content
        else:
            seen = ""
        assert (await settled(server, message["id"]))["status"] == "sent", name
        assert len(peer.mails) == number + 1
        wire = peer.mails[-1].raw
        for secret in (LINK, "hidden.example", "take.exe"):
            assert secret not in everything(wire) or secret in seen or is_in_a_file(wire, seen), name
        assert "Hello" in everything(wire), name


def is_in_a_file(wire: bytes, seen: str) -> bool:
    """Whether every file is shown by its name, type and hash."""
    files = list(read(wire).iter_attachments())
    return bool(files) and all(str(file.get_filename()) in seen for file in files)


@pytest.mark.sqlite_alone
async def test_what_a_rule_asks_about_is_found_wherever_it_is(server: Server) -> None:
    inbox_id = await server.new_inbox("agent")
    number = 0
    for rule, names in {
        "links": ("a last HTML", "enriched text", "AMP", "a calendar", "a calendar file", "an email inside"),
        "attachments": ("uuencode", "a data URL", "an email inside", "a file elsewhere", "rich text"),
    }.items():
        await require_approval(server, inbox_id, rule)
        for name in names:
            number += 1
            raw = f"{HEAD}Message-ID: <{number}@client>\r\n{HIDDEN_PARTS[name]}".encode()
            code, words = await submit(server, raw)
            assert (code, words) == (250, f"2.0.0 held: {rule}. It is sent when approved."), name


PICTURE = parts(
    "related",
    part("text/html", '<p>Gr\u00fc\u00dfe <img src="cid:logo@x"></p>'),
    part(
        'image/png; name="other.exe"',
        base64.b64encode(b"picture").decode(),
        "Content-Transfer-Encoding: base64",
        "Content-ID: <logo@x>",
        'Content-Disposition: inline; filename="logo.png"',
    ),
    part('text/csv; charset=iso-8859-1; name="a.csv"', "1,2", "Content-ID: <unused@x>"),
)


@pytest.mark.sqlite_alone
async def test_texts_files_and_pictures_arrive_as_they_were_read(server: Server, peer: SmtpPeer) -> None:
    inbox_id = await server.new_inbox("agent")
    given = "Message-ID: <1@client>\r\nReply-To: a@there.example, B <b@there.example>\r\n"
    code, words = await submit(server, f"{HEAD}{given}{PICTURE}".encode())
    assert code == 250, words
    message = await settled(server, (await newest(server, inbox_id))["id"])
    mail = read(peer.mails[0].raw)
    body = mail.get_body(("html",))
    assert body is not None
    assert body.get_content().strip() == '<p>Gr\u00fc\u00dfe <img src="cid:logo@x"></p>'
    shown = {each["Content-ID"]: each for each in mail.walk() if each["Content-ID"]}
    assert {str(name): each.get_content() for name, each in shown.items()} == {"<logo@x>": b"picture"}
    assert b"other.exe" not in peer.mails[0].raw
    (file,) = mail.iter_attachments()
    assert (file.get_filename(), file.get_content_charset()) == ("a.csv", "iso-8859-1")
    assert str(mail["Reply-To"]) == "a@there.example, B <b@there.example>"
    assert message["replyTo"] == "a@there.example, B <b@there.example>"
    assert message["fromAddr"] == f"The Agent <{OWN}>"
    assert [each["filename"] for each in message["attachments"]] == ["logo.png", "a.csv"]


@pytest.mark.sqlite_alone
async def test_an_answer_to_an_invitation_stays_one(server: Server, peer: SmtpPeer) -> None:
    inbox_id = await server.new_inbox("agent")
    answer = ICS.replace("REQUEST", "REPLY").replace("URL:" + LINK, "ORGANIZER:mailto:bob@there.example")
    await require_approval(server, inbox_id, "links")
    body = parts("alternative", PLAIN, part("text/calendar; method=REPLY; charset=utf-8", answer))
    code, words = await submit(server, f"{HEAD}Message-ID: <1@client>\r\n{body}".encode())
    assert (code, words[:18]) == (250, "2.0.0 Accepted as "), "the address of a person is no link"
    message = await settled(server, (await newest(server, inbox_id))["id"])
    assert message["calendar"]["method"] == "REPLY"
    (calendar,) = [
        each for each in read(peer.mails[0].raw).walk() if each.get_content_type() == "text/calendar"
    ]
    assert calendar.get_param("method") == "REPLY"
    assert calendar.get_content().replace("\r\n", "\n").strip() == answer.replace("\r\n", "\n").strip()


@pytest.mark.sqlite_alone
async def test_a_text_beside_html_is_shown_to_who_reads_the_html(server: Server, peer: SmtpPeer) -> None:
    inbox_id = await server.new_inbox("agent")
    loose = (part("text/plain", "Above & more"), HTML, part("text/plain", "Below"))
    named = part("text/plain", "File", 'Content-Disposition: attachment; filename="a.txt"')
    code, words = await submit(server, f"{HEAD}{parts('mixed', *loose, named)}".encode())
    assert code == 250, words
    message = await settled(server, (await newest(server, inbox_id))["id"])
    wanted = "<pre>Above &amp; more</pre>\n<p>Hello</p>\n<pre>Below</pre>"
    body = read(peer.mails[0].raw).get_body(("html",))
    assert body is not None
    assert body.get_content().replace("\r\n", "\n").strip() == wanted
    assert message["bodyHtml"].strip() == wanted
    assert message["bodyText"] == "Above & more\nBelow"


SIGNED_PART = "Content-Type: text/plain\r\nX-Odd:  kept \r\n\r\nSigned words  \r\n"
SIGNED = (
    f"{HEAD}Message-ID: <1@client>\r\nSender: ceo@bank.example\r\nX-Mailer: Client\r\n"
    "Content-Type: multipart/signed; micalg=pgp-sha256; boundary=b; boundary=c;\r\n"
    ' protocol="application/pgp-signature"; extra=hidden\r\n\r\n'
    f"--b\r\n{SIGNED_PART}\r\n--b\r\nContent-Type: application/pgp-signature\r\n\r\nabc\r\n--b--\r\n"
)
ENCRYPTED = (
    f"{HEAD}Message-ID: <1@client>\r\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data;\r\n"
    ' name="x.p7m"\r\nContent-Transfer-Encoding: base64\r\nContent-Description: hidden\r\n\r\nAAAA\r\n'
)


@pytest.mark.sqlite_alone
async def test_a_signed_email_keeps_the_bytes_of_its_part_where_nothing_holds_it(
    server: Server, peer: SmtpPeer
) -> None:
    inbox_id = await server.new_inbox("agent")
    assert (await submit(server, SIGNED.encode()))[0] == 250
    await settled(server, (await newest(server, inbox_id))["id"])
    wire = peer.mails[0].raw
    assert SIGNED_PART.encode() in wire
    mail = read(wire)
    assert mail.get_params()[1:] == [  # type: ignore[index]
        ("protocol", "application/pgp-signature"),
        ("micalg", "pgp-sha256"),
        ("boundary", "b"),
    ]
    assert (mail["Sender"], mail["X-Mailer"], b"hidden" in wire) == (None, "Client", False)
    raw = ENCRYPTED.replace("<1@", "<2@")
    assert (await submit(server, raw.encode()))[0] == 250
    await settled(server, (await newest(server, inbox_id))["id"])
    wire = peer.mails[1].raw
    assert (wire.endswith(b"\r\n\r\nAAAA\r\n"), b"hidden" in wire, b"x.p7m" in wire) == (True, False, False)


@pytest.mark.sqlite_alone
@pytest.mark.parametrize("raw", [SIGNED, ENCRYPTED], ids=["signed", "encrypted"])
async def test_a_signed_or_encrypted_email_that_would_be_held_is_refused_with_the_reason(
    server: Server, peer: SmtpPeer, raw: str
) -> None:
    inbox_id = await server.new_inbox("agent")
    for number, rule in enumerate(("always", "links", "attachments", "strangers")):
        await require_approval(server, inbox_id, rule)
        code, words = await submit(server, raw.replace("<1@", f"<{number}@").encode())
        assert code == 550
        assert re.match(rf"5\.7\.1 forbidden: This email is \w+ and would be held \({rule}\)\.", words), words
    await require_approval(server, inbox_id)
    assert (await server.api.put("/v1/pause")).status_code == 200
    assert (await submit(server, raw.encode()))[0] == 550
    assert peer.mails == []


@pytest.mark.sqlite_alone
async def test_a_signed_email_whose_key_is_revoked_before_it_leaves_fails_and_is_shown_to_nobody(
    server: Server, peer: SmtpPeer
) -> None:
    inbox_id = await server.new_inbox("agent")
    key = await new_key(server, inbox_id)
    peer.behaviour["MAIL"] = b"450 4.2.0 later"
    assert (await submit(server, SIGNED.encode(), key["token"]))[0] == 250
    await until(lambda: peer.stages["MAIL"] >= 1, "a first attempt")
    message = await newest(server, inbox_id)
    await server.api.delete(f"/v1/inboxes/{inbox_id}/api-keys/{key['id']}")
    failed = await settled(server, message["id"])
    assert failed["status"] == "failed"
    assert "needs approval" in failed["recipients"][0]["lastReply"]
    assert peer.mails == []


@pytest.mark.sqlite_alone
async def test_an_email_that_cannot_be_read_completely_is_refused(server: Server) -> None:
    await server.new_inbox("agent")
    damaged = part("text/plain", "SGVsbG8=!\r\nSGVsbG8", "Content-Transfer-Encoding: base64")
    long = "a " * 600_000
    for raw, wanted in (
        (f"{HEAD}{damaged}", "550 5.7.1 bad_request: This email cannot be read completely: a part with"),
        (f"{HEAD}\r\n{long}", "550 5.7.1 payload_too_large: The text of an email can have 1,000,000"),
        (f"{HEAD.replace('Plan', 'a ' * 600)}\r\nHi", "550 5.7.1 bad_request: The subject can have 998"),
    ):
        code, words = await submit(server, raw.encode())
        assert f"{code} {words}".startswith(wanted), words


SAMPLES = sorted((Path(__file__).parent.parent / "mail" / "samples").rglob("*.eml"))
INBOX = Inbox("inb_1", "acc_1", OWN, None, 0, "pod_1")


def composed(raw: bytes, mail: ParsedMail) -> bytes:
    block = headers.split(raw, 0)
    submitted_mail.require_readable(block, mail)
    return compose.compose(submitted_mail.to_draft(INBOX, block.headers, mail, 0))


def seen(mail: ParsedMail) -> list[Any]:
    files = sorted(file.content for file in mail.attachments if file.content_type != "text/calendar")
    text = mail.body_text or html_to_text(mail.body_html)
    return [
        mail.subject,
        mail.to,
        mail.cc,
        text.strip(),
        mail.body_html.strip(),
        files,
        mail.references[-20:],
    ]


def test_what_is_composed_reads_as_what_was_read_and_composes_to_the_same_bytes() -> None:
    refused = 0
    for path in SAMPLES:
        raw = path.read_bytes()
        mail = parse_mail(raw)
        try:
            written = composed(raw, mail)
        except BadRequest:
            refused += 1
            continue
        again = parse_mail(written)
        assert (seen(again), again.parse_error) == (seen(mail), ""), path.name
        assert composed(written, again) == written, path.name
    assert refused <= len(SAMPLES) // 20
