"""Bounces and complaints as the JSON of a mail service: in an email (Amazon SNS), or posted to us by HTTP."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from postroom_mail.reports import reasons
from postroom_mail.reports.notice import Notice
from postroom_mail.reports.report import (
    RECIPIENTS_LIMIT,
    RecipientReport,
    Report,
    clean_address,
    kind_of,
    typed_value,
)

TEXT_LIMIT = 60_000
SUBJECT = "aws notification message"

Fields = Mapping[str, Any]


def is_json_notice(subject: str) -> bool:
    return subject.strip().lower().startswith(SUBJECT)


def read_mailed(notice: Notice) -> Report | None:
    """Read a notice in the text of an email, with or without the footer of the service below it."""
    text = notice.text.lstrip()[:TEXT_LIMIT]
    if not text.startswith("{"):
        return None
    # Some servers wrap lines inside of strings: after so many characters, or at a blank.
    first, second = (*map(len, text.split("\n", 2)[:2]), 0)[:2]
    breaks = ("", " ") if abs(first - second) < 2 else (" ", "")
    read = map(_read_written, (text, *(text.replace("\n", each) for each in breaks)))
    return next((report for report in read if report is not None), None)


def _read_written(text: str) -> Report | None:
    try:
        document, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return read_notice(document)


def read_notice(document: object) -> Report | None:
    """Read a notice, recognised by the fields of each service; None for anything else."""
    if not isinstance(document, dict):
        return None
    found = (read(document) for read in _SERVICES)
    return next((report for report in found if report is not None), None)


def _read_ses(document: Fields) -> Report | None:
    kind = _text(document, "notificationType") or _text(document, "eventType")
    mail = _fields(document, "mail")
    if kind == "Bounce":
        bounce = _fields(document, "bounce")
        words = " ".join(_text(bounce, name) for name in ("bounceType", "bounceSubType"))
        named = [_ses_recipient(each, words) for each in _list(bounce, "bouncedRecipients")]
        return _report(named, _ses_message_id(mail))
    if kind == "Complaint":
        complaint = _fields(document, "complaint")
        named = [RecipientReport(_address(each)) for each in _list(complaint, "complainedRecipients")]
        return _complaint(named, _text(complaint, "complaintFeedbackType"), _ses_message_id(mail))
    return None


def _ses_recipient(recipient: Fields, words: str) -> RecipientReport:
    diagnostic = typed_value(_text(recipient, "diagnosticCode")) or words
    return _failed(_address(recipient), _text(recipient, "status"), diagnostic)


def _ses_message_id(mail: Fields) -> str:
    headers = {_text(each, "name").lower(): _text(each, "value") for each in _list(mail, "headers")}
    return headers.get("message-id", "") or _text(_fields(mail, "commonHeaders"), "messageId")


def _read_postmark(document: Fields) -> Report | None:
    address = _text(document, "Email")
    match _text(document, "RecordType"):
        case "Bounce":
            words = _text(document, "Details") or _text(document, "Description") or _text(document, "Type")
            return _report([_failed(address, "", words)], _text(document, "MessageID"))
        case "SpamComplaint":
            return _complaint([RecipientReport(clean_address(address))], "", _text(document, "MessageID"))
    return None


def _read_mailgun(document: Fields) -> Report | None:
    event = _fields(document, "event-data")
    address = _text(event, "recipient")
    message_id = _text(_fields(_fields(event, "message"), "headers"), "message-id")
    match _text(event, "event"), _text(event, "severity"):
        case "failed", "permanent":
            status = _fields(event, "delivery-status")
            words = f"{_text(status, 'code')} {_text(status, 'message') or _text(status, 'description')}"
            return _report([_failed(address, "", words.strip())], _bracketed(message_id))
        case "complained", _:
            return _complaint([RecipientReport(clean_address(address))], "", _bracketed(message_id))
    return None


def _read_sendgrid(document: Fields) -> Report | None:
    """Read one event of a posted list."""
    address, message_id = _text(document, "email"), _text(document, "smtp-id")
    match _text(document, "event"):
        case "bounce" | "dropped":
            failed = _failed(address, _text(document, "status"), _text(document, "reason"))
            return _report([failed], message_id)
        case "spamreport":
            return _complaint([RecipientReport(clean_address(address))], "", message_id)
    return None


def _read_resend(document: Fields) -> Report | None:
    data = _fields(document, "data")
    addresses = data.get("to")
    named = [each for each in addresses if isinstance(each, str)] if isinstance(addresses, list) else []
    message_id = _text(data, "message_id")
    match _text(document, "type"):
        case "email.bounced":
            words = _text(_fields(data, "bounce"), "message") or _text(_fields(data, "bounce"), "type")
            return _report([_failed(each, "", words) for each in named], message_id)
        case "email.complained":
            return _complaint([RecipientReport(clean_address(each)) for each in named], "", message_id)
    return None


_SERVICES: tuple[Callable[[Fields], Report | None], ...] = (
    _read_ses, _read_postmark, _read_mailgun, _read_sendgrid, _read_resend,
)  # fmt: skip


def _report(recipients: list[RecipientReport], message_id: str) -> Report | None:
    named = tuple(each for each in recipients if "@" in each.final_recipient)[:RECIPIENTS_LIMIT]
    return Report(kind_of(named), named, message_id or None) if named else None


def _complaint(recipients: list[RecipientReport], feedback_type: str, message_id: str) -> Report | None:
    named = tuple(each for each in recipients if "@" in each.final_recipient)[:RECIPIENTS_LIMIT]
    if feedback_type == "not-spam":
        return None
    return Report("complaint", named, message_id or None, feedback_type or "abuse")


def _failed(address: str, status: str, words: str) -> RecipientReport:
    diagnostic = " ".join(words.split())[: reasons.DIAGNOSTIC_LIMIT]
    found = reasons.found_status(status) or reasons.found_status(diagnostic)
    return RecipientReport(clean_address(address), "failed", found, diagnostic)


def _address(recipient: Fields) -> str:
    return clean_address(_text(recipient, "emailAddress"))


def _bracketed(message_id: str) -> str:
    return f"<{message_id}>" if message_id and not message_id.startswith("<") else message_id


def _text(fields: Fields, name: str) -> str:
    value = fields.get(name)
    return str(value)[: reasons.DIAGNOSTIC_LIMIT] if isinstance(value, str | int) else ""


def _fields(fields: Fields, name: str) -> Fields:
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def _list(fields: Fields, name: str) -> Iterator[Fields]:
    value = fields.get(name)
    return (each for each in value if isinstance(each, dict)) if isinstance(value, list) else iter(())
