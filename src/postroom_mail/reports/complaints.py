"""Complaints: abuse reports (RFC 5965) and the formats of large providers."""

import re

from postroom_mail.mime.headers import split, unfold
from postroom_mail.reports import report_senders
from postroom_mail.reports.notice import (
    HEADER_ONLY_TYPES,
    RETURNED_TYPES,
    Notice,
    content_of,
    head_text,
    message_id_in,
    return_paths_in,
    returned_head,
)
from postroom_mail.reports.report import RECIPIENTS_LIMIT, RecipientReport, Report, clean_address, typed_value

COMPLAINT_TYPES = {"message/feedback-report"}
NO_COMPLAINT = {"not-spam", "auth-failure", "dmarc", "virus-not-found"}  # RFC 5965 section 7.3, RFC 6591
FIELD_LIMIT_BYTES = 20_000

_FEEDBACK_SENDER = re.compile(
    r"(?:[\w.+-]{0,40}[-_.])?(?:fbl|feedback(?:loop)?|feedback-?loop|complaints?|abuse|arf|scomp"
    r"|spam-?reports?|staff|jmrp|cfl|postmaster|fblreports?|scart|reports?|spamreport)"
    r"(?:[-_.+][\w.+-]{0,60})?"
)
_FEEDBACK_SUBJECT = re.compile(
    r"complaint about message from|abuse report|feedback report|spam (?:report|complaint)|email feedback"
    r"|\[spamcop |fw: spam:"
    r"|abuse complaint|marked as spam|user complaint|жалоба на спам|plainte|reklamation|投诉|举报",
    re.I,
)
# Original-Rcpt-To is of RFC 5965 section 3.3, the others are of providers.
_RECIPIENT_FIELDS = (
    "original-rcpt-to", "original-recipient", "removal-recipient", "x-hmxmroriginalrecipient", "x-rcpt-to",
    "x-original-rcpt-to",
)  # fmt: skip
_COPY_IN_TEXT = re.compile(
    r"^\[ ?offending message ?\][^\n]{0,80}\n|^-{2,20} ?original message ?-{0,20}\n", re.I | re.M
)


def read_complaint(notice: Notice) -> Report | None:
    part = notice.first_of(COMPLAINT_TYPES)
    if part is None:
        return _read_own_form(notice)
    # A report is a multipart/report (RFC 5965 section 2); large providers send other multiparts.
    if notice.content_type != "multipart/report" and not _is_from_feedback_loop(notice):
        return None
    fields = _fields(content_of(part).lstrip(b"\r\n"))
    feedback_type = fields.get("feedback-type", "").lower()[:100]
    if not feedback_type or feedback_type in NO_COMPLAINT or "auth-failure" in fields:
        return None
    return _report(notice, feedback_type, fields)


def has_feedback(notice: Notice) -> bool:
    """Includes kinds of feedback that are no complaint."""
    return notice.first_of(COMPLAINT_TYPES) is not None


def _read_own_form(notice: Notice) -> Report | None:
    """Read a feedback loop that only attaches the email, or describes it in its own text."""
    if not _is_from_feedback_loop(notice) or not _FEEDBACK_SUBJECT.search(notice.subject):
        return None
    if report_senders.is_dmarc_report(notice):
        return None
    if _original_part(notice)[0] or _COPY_IN_TEXT.search(notice.text):
        return _report(notice, "abuse", {})
    return None


def _is_from_feedback_loop(notice: Notice) -> bool:
    return is_feedback_address(notice.from_address)


def is_feedback_address(address: str) -> bool:
    return _FEEDBACK_SENDER.fullmatch(address.lower().partition("@")[0][:200]) is not None


def _report(notice: Notice, feedback_type: str, fields: dict[str, str]) -> Report:
    original, has_body = _original_part(notice)
    if not original:
        original, has_body = _original_in_text(notice)
    head = returned_head(notice) or head_text(original[:FIELD_LIMIT_BYTES], "utf-8")
    mail_from = clean_address(typed_value(fields.get("original-mail-from", ""))) or None
    paths = dict.fromkeys(path for path in (mail_from, *return_paths_in(head)) if path)
    return Report(
        kind="complaint",
        recipients=_recipients(fields | _fields(original[:FIELD_LIMIT_BYTES])),
        original_message_id=message_id_in(head),
        feedback_type=feedback_type,
        original_mail_from=mail_from,
        original=original,
        original_has_body=has_body,
        return_paths=tuple(paths),
    )


def _original_part(notice: Notice) -> tuple[bytes, bool]:
    part = notice.first_of(RETURNED_TYPES)
    if part is None:
        return b"", False
    return content_of(part).lstrip(b"\r\n"), part.content_type not in HEADER_ONLY_TYPES


def _original_in_text(notice: Notice) -> tuple[bytes, bool]:
    match = _COPY_IN_TEXT.search(notice.text)
    if match is None:
        return b"", False
    copy = notice.text[match.end() :].lstrip("\n")
    return copy.replace("\n", "\r\n").encode("utf-8", "replace"), True


def _recipients(fields: dict[str, str]) -> tuple[RecipientReport, ...]:
    for name in _RECIPIENT_FIELDS:
        written = fields.get(name, "").split(",", RECIPIENTS_LIMIT)[:RECIPIENTS_LIMIT]
        addresses = dict.fromkeys(clean_address(typed_value(value)) for value in written)
        named = tuple(RecipientReport(address) for address in addresses if "@" in address)
        if named:
            return named
    return ()


def _fields(block: bytes) -> dict[str, str]:
    """Return the fields by lower-case name; of two with one name, the first."""
    return {name: unfold(values[0]) for name, values in split(block, 0, 500).headers.fields.items()}
