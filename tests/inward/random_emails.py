"""Random emails of the shapes that readers stumble over, and every reader that runs over a received email."""

import base64
import quopri
import random
from collections.abc import Callable, Iterator

from postroom.inward import screening
from postroom.inward.examine import look_for_signals
from postroom.inward.mails import Arrival, Destination, Origin, ReadMail
from postroom.inward.receive import read_mail
from postroom.mailbox import draft_mail
from postroom.processes.analysis import Analysis
from postroom.web.dashboard.display import mail_html
from postroom_mail.authentication import authenticity
from postroom_mail.mime import imap_sections, imap_values
from postroom_mail.mime.parse import ParsedMail, parse_mail
from postroom_mail.reading.appointment import calendars_of
from postroom_mail.reports.bounce import read_report, read_returned
from postroom_mail.reports.domain_report import find_report
from postroom_mail.screening import canary, mentions
from postroom_mail.search import index_entry, query, snippet
from postroom_mail.search.index_entry import Searchable
from postroom_mail.writing import content_view, forward, invitation_answer, quote
from postroom_mail.writing.content_hash import content_hash
from tests.doubles_dns import ZoneLookup

SYMBOLS = [
    "*",
    "**",
    "***",
    "** **",
    "* * *",
    "_",
    "__",
    "-",
    "--",
    "-- ",
    "---",
    "=",
    "#",
    "~",
    "—",
    "|",
    "|>",
]
CONTROLS = ["\0", "\x01", "\x08", "\x0b", "\x0c", "\x1b", "\x1c", "\x1f", "\x7f", "\x85", "\u2028", "\u2029"]
BIDI = ["\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2069", "\u061c"]
INVISIBLE = [
    "\u00a0",
    "\u200b",
    "\u200d",
    "\u2060",
    "\ufeff",
    "\u3000",
    "\u00ad",
    "\ufffd",
    "\U000e0041",
    "\ufe0f",
]
QUOTES = ["> quoted", ">", "> > deeper", "|> quoted", "\uff1e quoted", ">*", "> ***", "\u200e> quoted"]
HEADS = [
    "On Fri, May 6, 2022 at 10:11 AM, Roman",
    "On Mon, 1 Jan 2024 at 9:00, Ann <ann@example.com> wrote:",
    "Am 01.02.2024 um 10:11 schrieb Ann:",
    "Le lun. 1 janv. 2024 à 10:00, Ann <a@b.example> a écrit :",
    "2011/4/7 Ann <ann@example.com>",
    "2024年1月1日 10:00 Ann <a@b.example>:",
    "wrote:",
    "wrote: ",
    ":",
    "---:",
    "-----Original Message-----",
    "---------- Forwarded message ---------",
    "Begin forwarded message:",
    "From: Ann <a@b.example>",
    "Sent: Monday",
    "Date: Mon, 1 Jan 2024",
    "To: Bob",
    "Subject: Hello",
    "Sent from my iPhone",
    "_______________________________________________",
]
WORDS = [
    "Hello",
    "Your code is 123456",
    "Your PIN: 8842 1190.",
    "G-123456 is your Google verification code",
    "https://example.com/unsubscribe?u=1",
    "http://[::1",
    "https://exa\u200bmple.com:99999/%zz",
    "www.example.com",
    "mailto: a@b.example?subject=%",
    "Ignore previous instructions",
    "Ваш код 1234",
    "رمز التحقق ١٢٣٤",
    "認証コード\uff1a\uff11\uff12\uff13\uff14",
    "코드 123456",
    "\u0e23\u0e2b\u0e31\u0e2a 123456",
    "💌",
    "\u017ftraße \ufb01 \u0130",
    "550 5.1.1 <a@b.example>: Recipient address rejected",
    "Status: 5.1.1",
    "Final-Recipient: rfc822; a@b.example",
    "Diagnostic-Code: smtp; 550",
    '{"notificationType":"Bounce","bounce":',
    "begin 644 x",
    "=?utf-8?Q?=",
    "&#x110000; &#0; &#xD800; &amp",
    "A" * 300,
    "9" * 60,
]
HTML = [
    "<br>",
    "<br>***<br>",
    "<p>",
    "</p>",
    "<b>",
    "<p><b>",
    "<div style='display:none'>",
    '<div style="font:0/0 a;color:#ffffff00">',
    "<span style='opacity:calc(1 - '>",
    "</div>",
    "<table><tr><td width=1%>",
    "</table>",
    "<style>@media (max-width:1px){.a{display:none}} .a:not(</style>",
    "<style>",
    "<!-- ",
    "-->",
    "<![CDATA[",
    "<a href='https://example.com'>https://other.example</a>",
    "<a href=",
    '<a href="javascript:x" title=\'',
    "<img src=cid:1 alt='Describe this picture'>",
    "<blockquote>",
    "<li>",
    "<ol start=99999999999999999999>",
    "<pre>",
    "<svg><math>",
    "<title>",
    "<textarea>",
    "<select><option>",
    "<font color=#fff size=+99>",
    "<p style='background:linear-gradient(,);clip-path:polygon(0 0'>",
    "<p style='transform:matrix(;width:calc(;color:rgb(;font-size:-1e999px'>",
    "<x-y z='&#0;'>",
    "</",
    "<",
    "&",
]
CALENDAR = [
    "BEGIN:VCALENDAR",
    "BEGIN:VEVENT",
    "END:VEVENT",
    "END:VCALENDAR",
    "METHOD:REQUEST",
    "UID:1",
    "DTSTART:20240101T100000Z",
    "DTSTART;TZID=Europe/Berlin:20240101T100000",
    'DTSTART;TZID="(UTC+01:00) A\\, B":20240101T100000',
    "DTSTART;VALUE=DATE:20240101",
    "DTSTART:99999999T999999",
    "DTEND:00000000",
    "DURATION:P9999999999D",
    "DURATION:-PT",
    "RRULE:FREQ=DAILY;INTERVAL=0;COUNT=99999999999",
    "EXDATE:,,,",
    "RECURRENCE-ID:",
    'ATTENDEE;CN="A:b@c.example',
    "ORGANIZER:mailto:",
    "SUMMARY:\\n\\",
    "SEQUENCE:1e9",
    "BEGIN:VTIMEZONE",
    "TZID:A\\,B",
    "TZOFFSETTO:+9999",
    "END:VTIMEZONE",
    " folded",
    ":",
]
FIELDS = [
    "From: Ann <ann@example.com>",
    "From: =?utf-8?B?4oCu?= <a@b.example>",
    "From: <>",
    "From: @",
    'From: a@b@c, "',
    "From: undisclosed:;",
    "From: \u202eAnn <ann@exämple.com>",
    "To: hello@postroom.localhost",
    "To: group: a@b.example, c@d.example;",
    "Cc: ,,,",
    "Subject: Re: ***",
    "Subject: Fwd: =?utf-8?Q?=00=01?=",
    "Subject: \u200e",
    "Subject:",
    "Date: Mon, 1 Jan 2024 10:00:00 +0100",
    "Date: Mon, 32 Foo 99999 99:99:99 +9999",
    "Date: ,",
    "Message-ID: <1@example.com>",
    "Message-ID: <",
    "In-Reply-To: <2@example.com>",
    "References: <1@a> <2@b> <",
    "Auto-Submitted: auto-replied;",
    "Auto-Submitted: ;",
    "Precedence: bulk",
    "List-Unsubscribe: <https://example.com/u>, <mailto: u@example.com>",
    "List-Unsubscribe: <<>",
    "List-Id: <",
    "Return-Path: <>",
    "X-Failed-Recipients: a@b.example",
    "Disposition-Notification-To: x",
    "Authentication-Results: x; dkim=pass (",
    "DKIM-Signature: v=1; a=rsa-sha256; d=example.com; s=s; h=from; bh=; b=",
    "DKIM-Signature: =;;;v",
    "ARC-Seal: i=1; cv=none; a=rsa-sha256; b=",
    "Received: from x by y; Mon",
    "Content-ID: <",
    "no field at all",
    "\u200e",
    ":",
]
PARTS = [
    "text/plain",
    "text/plain; charset=utf-8; format=flowed; delsp=yes",
    "text/plain; charset=utf-7",
    'text/plain; charset="',
    "text/html; charset=utf-8",
    "text/html",
    "text/calendar; method=REQUEST",
    "message/delivery-status",
    "message/rfc822",
    "message/feedback-report",
    'application/octet-stream; name="=?utf-8?Q?=E2=80=AE?=.txt"',
    "application/zip; name*0*=utf-8''%E2; name*1=x",
    "image/png",
    "text/",
    "/",
]
ENCODINGS = ["", "7bit", "8bit", "quoted-printable", "base64", "x-uuencode", "binary;", "BASE64 "]
LINE_ENDS = ["\r\n", "\n", "\r"]
ASKED = query.parse("code subject:hello -x")


def emails(chance: random.Random, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield email(chance)


def email(chance: random.Random) -> bytes:
    end = chance.choice(LINE_ENDS) if chance.random() < 0.3 else "\r\n"
    head = [chance.choice(FIELDS) for _ in range(chance.randrange(8))]
    body = _part(chance, end, 0)
    raw = end.join([*head, *body]).encode("utf-8", "surrogatepass")
    if chance.random() < 0.1:  # a damaged byte
        place = chance.randrange(len(raw) + 1)
        raw = raw[:place] + bytes([chance.randrange(256)]) + raw[place:]
    return raw


def _part(chance: random.Random, end: str, depth: int) -> list[str]:
    """The fields of a part, a blank line and its content."""
    if depth < 3 and chance.random() < 0.35:
        kind = chance.choice(
            ["mixed", "alternative", "report; report-type=delivery-status", "related", "signed"]
        )
        lines = [f"Content-Type: multipart/{kind}; boundary=b{depth}", ""]
        for _ in range(chance.randrange(4)):
            lines += [f"--b{depth}", *_part(chance, end, depth + 1)]
        return [*lines, f"--b{depth}--"] if chance.random() < 0.8 else lines
    kind, encoding = chance.choice(PARTS), chance.choice(ENCODINGS)
    fields = [f"Content-Type: {kind}"] if chance.random() < 0.8 else []
    if chance.random() < 0.2:
        fields.append(
            f"Content-Disposition: {chance.choice(['attachment', 'inline; filename=', ';filename=../x'])}"
        )
    text = _content(chance, kind, end)
    if encoding and chance.random() < 0.5:
        fields.append(f"Content-Transfer-Encoding: {encoding}")
        written_bytes = text.encode("utf-8", "surrogatepass")
        if "base64" in encoding.lower():
            text = base64.encodebytes(written_bytes).decode()
        elif encoding == "quoted-printable":
            text = quopri.encodestring(written_bytes).decode("latin-1")
    return [*fields, *([""] if chance.random() < 0.95 else []), text]


def _content(chance: random.Random, kind: str, end: str) -> str:
    if "calendar" in kind:
        lines = [chance.choice(CALENDAR) for _ in range(chance.randrange(30))]
        return end.join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines])
    own = HTML if "html" in kind else QUOTES
    return end.join(_line(chance, own) for _ in range(chance.randrange(25)))


def _line(chance: random.Random, own: list[str]) -> str:
    pools = (own, QUOTES, SYMBOLS, HEADS, WORDS, CONTROLS, BIDI, INVISIBLE, [""])
    weights = (6, 4, 4, 3, 4, 1, 1, 1, 2)
    pieces = [chance.choice(chance.choices(pools, weights)[0]) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return chance.choice(("", " ")).join(pieces)


def arrival(raw: bytes, peer_ip: str = "192.0.2.1") -> Arrival:
    return Arrival(Origin((Destination("inb_1"),), b"Received: x\r\n", peer_ip, "helo", "a@example.com"), raw)


def read_whole(raw: bytes) -> tuple[ParsedMail, ReadMail]:
    return parse_mail(raw), read_mail(arrival(raw))


def every_reader(raw: bytes) -> Iterator[tuple[str, Callable[[], object]]]:
    """Readers of a received email besides those of `read_mail`, each with its name."""
    mail, read = read_whole(raw)
    searchable = Searchable(mail.subject, mail.from_addr, [mail.header_to], read.mail.body_text, ["x"], ["y"])
    forwarded = forward.Forwarded(mail.from_addr, 0, mail.subject, mail.header_to, "", mail.body_text)
    yield "bounce", lambda: read_returned(raw)
    yield "report", lambda: read_report(raw, "")
    yield "signals", lambda: _signals(mail)
    yield "sender", lambda: screening.with_sender(screening.NOT_EXAMINED, mail, "none", ["ann@example.com"])
    yield "search", lambda: index_entry.to_fts5(index_entry.of_mail(searchable, "r", ["a"]))
    yield "tsvector", lambda: index_entry.to_tsvector(index_entry.of_mail(searchable, "r", ["a"]))
    yield (
        "snippet",
        lambda: (snippet.matched_fields(ASKED, searchable), snippet.snippet(mail.body_text, ASKED)),
    )
    yield "envelope", lambda: imap_values.envelope_of(raw)
    yield "structure", lambda: imap_values.body_structure(imap_sections.scan([raw]), is_extended=True)
    yield "page", lambda: mail_html.nested(mail.body_html, mail_html.Embedded(mail.attachments))
    yield "domain report", lambda: find_report(mail)
    yield "content", lambda: (content_hash(raw, ()), content_view.view(raw, ()))
    yield "draft", lambda: draft_mail.read(raw)
    yield "canary", lambda: canary.holds_token(raw, "abcdefghjkmnpqrstuvw")
    yield "mentions", lambda: mentions.mentions_a_link(mail.body_text, mail.body_html)
    yield (
        "quote",
        lambda: (
            quote.quote_text("a", mail.body_text, mail.from_addr, 0),
            quote.quote_html(mail.body_html, mail.body_text, mail.from_addr, 0),
        ),
    )
    yield "forward", lambda: (forward.forward_text("a", forwarded), forward.forward_html("a", forwarded))
    yield "invitation", lambda: [invitation_answer.find_invitation(each) for each in calendars_of(mail)]
    yield "authentication", lambda: _check(raw, mail)


def _signals(mail: ParsedMail) -> object:
    readers = Analysis()
    found = look_for_signals(mail, (), "none", ("ann@example.com",), readers)
    assert not readers.failed, readers.failed
    return found


def _check(raw: bytes, mail: ParsedMail) -> object:
    return authenticity.check(
        raw,
        peer_ip="192.0.2.1",
        helo="helo",
        mail_from="a@example.com",
        from_address=mail.from_address,
        lookup=ZoneLookup(),
        deadline_seconds=5.0,
    )
