"""Reads reports about sent mail: delivery status (RFC 3464), complaints (RFC 5965) and older plain texts.

Reports come from anyone: nothing here raises, and only the first megabyte is read.
"""

import base64
import quopri
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

REPORT_LIMIT_BYTES = 1_000_000
PARTS_LIMIT = 20
RECIPIENTS_LIMIT = 100
ADDRESS_LIMIT = 320
DIAGNOSTIC_LIMIT = 1_000

STATUS_TYPES = {"message/delivery-status", "message/global-delivery-status"}
COMPLAINT_TYPES = {"message/feedback-report"}
RETURNED_TYPES = {"message/rfc822", "text/rfc822-headers", "message/global", "message/global-headers"}
NO_COMPLAINT = {"not-spam", "auth-failure"}  # RFC 5965 section 7.3, RFC 6591

ENHANCED_STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.]*\d)")
REPLY_CODE = re.compile(r"(?<![\d.])([245][0-5]\d)(?=[ -]|$)")
MESSAGE_ID = re.compile(r"<[^<>\s]{1,900}>")
MESSAGE_ID_LINE = re.compile(r"^message-id:\s{0,9}(<[^<>\s]{1,900}>)", re.I | re.M)
BOUNDARY = re.compile(r';\s*boundary\s*=\s*(?:"([^"]{1,200})"|([^\s;"]{1,200}))', re.I)
QMAIL_GREETING = "Hi. This is the "
QMAIL_RECIPIENT = re.compile(r"^<([^<>\s]{1,320})>:\n", re.M)

NAME_OR_LINK = re.compile(r"[@/]|\w\.\w")
# About the sender, not about the recipient's address (RFC 3463 section 3.2).
SENDER_STATUSES = {"5.1.7", "5.1.8", "5.1.9"}
FULL_STATUS = "5.2.2"
FULL = re.compile(r"\b(?:over ?quota|quota|mailbox (?:is )?full|storage)\b", re.I)
POLICY = re.compile(
    r"\b(?:spam|virus|polic(?:y|ies)|block(?:ed|list|listed)?|black ?list(?:ed)?|dnsbl|rbl|reputation|banned"
    r"|spf|dkim|dmarc|relay(?:ing)?|grey ?list(?:ed|ing)?|rate|too many|authentication|content|sender)\b",
    re.I,
)
NO_SUCH_ADDRESS = re.compile(
    r"\b(?:(?:user|recipient|mailbox|address|account|addressee|alias|domain|host)(?: name)?"
    r"(?: \w+){0,2} (?:unknown|not found|not exist|not listed|disabled|inactive|no longer)"
    r"|(?:unknown|no such|invalid|non-?existent|unrouteable|undeliverable)(?: \w+){0,1}"
    r" (?:user|recipient|mailbox|address|account|person|domain|hosts?|names?)"
    r"|(?:does not|doesn't) (?:exist|have an?(?: \w+)? account)|no mailbox here|mailbox unavailable"
    r"|nxdomain)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class RecipientReport:
    """`original_recipient` is the address as we wrote it, where a server on the way has changed it."""

    final_recipient: str
    action: str = ""
    status: str = ""
    diagnostic: str = ""
    original_recipient: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """`delayed` also stands for delivered, relayed and expanded: all that is no bounce."""

    kind: Literal["bounce", "complaint", "delayed"]
    recipients: tuple[RecipientReport, ...]
    original_message_id: str | None
    feedback_type: str | None = None
    original_mail_from: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    content_type: str
    fields: Mapping[str, str]
    body: str


def read_report(raw: bytes) -> Report | None:
    """The report a mail holds; None for ordinary mail."""
    text = raw[:REPORT_LIMIT_BYTES].decode("utf-8", "replace")
    mail = read_part(text.replace("\r\n", "\n").replace("\r", "\n"))
    if mail.content_type == "multipart/report":
        parts = {part.content_type: part for part in reversed(list(split_parts(mail)))}
        return read_status(parts) or read_complaint(parts)
    return read_failed_recipients(mail) or read_qmail(mail)


def is_hard(status: str, diagnostic: str) -> bool:
    """Whether sending again is pointless: refused for good, and not only because a mailbox is full."""
    if status == FULL_STATUS or FULL.search(diagnostic[:DIAGNOSTIC_LIMIT]):
        return False
    if status:
        return status.startswith("5")
    return (reply_code(diagnostic) or 0) >= 500


def is_about_address(code: int | None, status: str | None, text: str) -> bool:
    """Whether the reason is the address itself: no such user or domain. In doubt it is not."""
    words = plain_words(text)
    if (code is not None and code < 500) or (status or "5").startswith(("2", "4")):
        return False
    if status in SENDER_STATUSES or POLICY.search(words) or FULL.search(words):
        return False
    if status and status.startswith("5.1."):
        return True
    could_be_any_reason = not status or status.startswith(("5.0.", "5.4.", "5.5.")) or status == "5.2.1"
    return could_be_any_reason and NO_SUCH_ADDRESS.search(words) is not None


def reply_code(diagnostic: str) -> int | None:
    """The SMTP reply code in a diagnostic such as `550 5.1.1 no such user`."""
    match = REPLY_CODE.search(diagnostic[:DIAGNOSTIC_LIMIT])
    return int(match[1]) if match else None


def plain_words(text: str) -> str:
    """The text without host names, addresses and links, whose letters may say anything."""
    return " ".join(word for word in text[:DIAGNOSTIC_LIMIT].split() if not NAME_OR_LINK.search(word))


# --- RFC 3464


def read_status(parts: Mapping[str, Part]) -> Report | None:
    part = first_of(parts, STATUS_TYPES)
    if part is None:
        return None
    blocks = [read_fields(block) for block in part.body.strip("\n").split("\n\n", RECIPIENTS_LIMIT)]
    recipients = tuple(recipient_report(block) for block in blocks if names_recipient(block))
    if not recipients:
        return None
    failed = any(recipient.action == "failed" for recipient in recipients)
    return Report("bounce" if failed else "delayed", recipients, original_message_id(parts))


def names_recipient(block: Mapping[str, str]) -> bool:
    return "final-recipient" in block or "original-recipient" in block


def recipient_report(block: Mapping[str, str]) -> RecipientReport:
    original = typed_value(block.get("original-recipient", ""))
    diagnostic = typed_value(block.get("diagnostic-code", ""))[:DIAGNOSTIC_LIMIT]
    status = specific_status(found_status(block.get("status", "")), found_status(diagnostic))
    action = block.get("action", "").lower().strip()
    return RecipientReport(
        final_recipient=clean_address(typed_value(block.get("final-recipient", "")) or original),
        action=action or ("failed" if status.startswith("5") else "delayed"),
        status=status,
        diagnostic=diagnostic,
        original_recipient=clean_address(original) or None,
    )


def specific_status(reported: str, diagnosed: str) -> str:
    """Some servers report a bare 5.0.0 and leave the real status to the diagnostic."""
    return diagnosed or reported if reported.endswith(".0.0") or not reported else reported


def typed_value(value: str) -> str:
    """`rfc822; user@example.org` and `smtp; 550 no` without the type before the semicolon."""
    kind, semicolon, rest = value.partition(";")
    return rest.strip() if semicolon and " " not in kind.strip() else value.strip()


def clean_address(value: str) -> str:
    return value.strip().strip("<>")[:ADDRESS_LIMIT]


def found_status(text: str) -> str:
    match = ENHANCED_STATUS.search(text[:DIAGNOSTIC_LIMIT])
    return match[1] if match else ""


# --- RFC 5965


def read_complaint(parts: Mapping[str, Part]) -> Report | None:
    part = first_of(parts, COMPLAINT_TYPES)
    if part is None:
        return None
    fields = read_fields(part.body.strip("\n"))
    feedback_type = fields.get("feedback-type", "").lower()[:100]
    if not feedback_type or feedback_type in NO_COMPLAINT:
        return None
    addresses = (
        clean_address(value) for value in fields.get("original-rcpt-to", "").split(",", RECIPIENTS_LIMIT)
    )
    return Report(
        "complaint",
        tuple(RecipientReport(address) for address in addresses if address),
        original_message_id(parts),
        feedback_type,
        clean_address(fields.get("original-mail-from", "")) or None,
    )


# --- plain texts


def read_failed_recipients(mail: Part) -> Report | None:
    """Exim names who failed in a header; the reason stands in the text below each address."""
    names = mail.fields.get("x-failed-recipients", "").split(",", RECIPIENTS_LIMIT)[:RECIPIENTS_LIMIT]
    addresses = [address for address in map(clean_address, names) if address]
    if not addresses:
        return None
    return text_report(mail, [(address, paragraph_after(mail.body, address)) for address in addresses])


def paragraph_after(body: str, address: str) -> str:
    _, found, rest = body.partition(f"\n  {address}\n")
    return rest[: DIAGNOSTIC_LIMIT * 2].partition("\n\n")[0] if found else ""


def read_qmail(mail: Part) -> Report | None:
    """`<address>:` and the reason below it, in paragraphs after a fixed greeting (QSBMF)."""
    if not mail.body.lstrip("\n").startswith(QMAIL_GREETING):
        return None
    notice = mail.body.partition("\n--- Below this line")[0]
    pieces = QMAIL_RECIPIENT.split(notice, RECIPIENTS_LIMIT)[1:]
    reasons = [
        (address, text.partition("\n\n")[0]) for address, text in zip(pieces[::2], pieces[1::2], strict=True)
    ]
    return text_report(mail, reasons) if reasons else None


def text_report(mail: Part, reasons: list[tuple[str, str]]) -> Report:
    recipients = tuple(text_recipient(address, " ".join(reason.split())) for address, reason in reasons)
    match = MESSAGE_ID_LINE.search(mail.body)
    return Report("bounce", recipients, match[1] if match else None)


def text_recipient(address: str, reason: str) -> RecipientReport:
    return RecipientReport(address, "failed", found_status(reason), reason[:DIAGNOSTIC_LIMIT])


# --- as much of MIME as a report needs; linear in its size whatever it holds


def split_parts(mail: Part) -> Iterator[Part]:
    match = BOUNDARY.search(mail.fields.get("content-type", "")[:2_000])
    if not match:
        return
    line = re.compile(rf"(?:\A|\n)--{re.escape(match[1] or match[2])}(?:--)?[ \t]*(?=\n|\Z)")
    for piece in line.split(mail.body, PARTS_LIMIT)[1:]:
        yield read_part(piece.removeprefix("\n"))


def read_part(text: str) -> Part:
    # A part may have no header at all: then its blank line comes first.
    head, _, body = ("", "", text[1:]) if text.startswith("\n") else text.partition("\n\n")
    fields = read_fields(head)
    content_type = fields.get("content-type", "").partition(";")[0].strip().lower()
    return Part(
        content_type, fields, decoded(body, fields.get("content-transfer-encoding", "").strip().lower())
    )


def read_fields(block: str) -> dict[str, str]:
    """The fields by lower-case name, unfolded; of two with one name, the first."""
    fields: dict[str, str] = {}
    for line in re.sub(r"\n[ \t]+", " ", block).split("\n"):
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip().lower(), value.strip())
    return fields


def decoded(body: str, encoding: str) -> str:
    try:
        if encoding == "base64":
            body = base64.b64decode(body).decode("utf-8", "replace")
        elif encoding == "quoted-printable":
            body = quopri.decodestring(body.encode()).decode("utf-8", "replace")
    except ValueError:
        return ""
    return body.replace("\r\n", "\n")


def first_of(parts: Mapping[str, Part], types: set[str]) -> Part | None:
    return next((parts[kind] for kind in sorted(types) if kind in parts), None)


def original_message_id(parts: Mapping[str, Part]) -> str | None:
    returned = first_of(parts, RETURNED_TYPES)
    if returned is None:
        return None
    # The headers of the returned mail, without a body that anyone may have written into it.
    head = returned.body.lstrip("\n").partition("\n\n")[0]
    match = MESSAGE_ID.search(read_fields(head).get("message-id", "")[:2_000])
    return match[0] if match else None
