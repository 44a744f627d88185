"""Delivery status as fields (RFC 3464), in the part made for it or written into the text."""

import re
from collections.abc import Iterator, Mapping

from postroom_mail.reports import reasons
from postroom_mail.reports.notice import STATUS_TYPES, Notice, text_of, unix_lines
from postroom_mail.reports.report import RECIPIENTS_LIMIT, RecipientReport, clean_address, typed_value

FIELDS_LIMIT = 5_000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,60}\Z")
_OPENS_RECIPIENT = ("final-recipient", "original-recipient", "x-actual-recipient", "action")
# RFC 3464 sections 2.3.1 and 2.3.2, and fields of older servers.
_NAMES_RECIPIENT = ("final-recipient", "original-recipient", "x-actual-recipient", "x-original-recipient")
_IN_TEXT = re.compile(r"^(?:Final|Original)-Recipient[ \t]{0,9}:", re.I | re.M)
_ACTION_IN_TEXT = re.compile(r"^(?:Action|Status)[ \t]{0,9}:", re.I | re.M)
# Beginnings of Action (RFC 3464 section 2.3.3: failed, delayed), also as some servers write it.
_FAILED = ("fail", "undeliver", "error", "bounce", "reject", "expired")
_DELAYED = ("delay", "warn", "deferred", "retry")


def read_status_part(notice: Notice) -> tuple[RecipientReport, ...]:
    """Reads several such parts too, as in a report that several servers extended."""
    parts = [part for part in notice.leaves if part.content_type in STATUS_TYPES]
    return tuple(each for part in parts for each in _recipients(text_of(part)))[:RECIPIENTS_LIMIT]


def read_status_text(notice: Notice) -> tuple[RecipientReport, ...]:
    """Read the same fields in a part of another type, or in the one text there is."""
    for part in notice.leaves:
        if part.content_type.startswith(("text/", "application/octet-stream")):
            text = text_of(part)
            first = _IN_TEXT.search(text)
            if first and _ACTION_IN_TEXT.search(text):
                return _recipients(text[_start_of_paragraph(text, first.start()) :])
    return ()


def _start_of_paragraph(text: str, position: int) -> int:
    return text.rfind("\n\n", 0, position) + 1


def _recipients(text: str) -> tuple[RecipientReport, ...]:
    blocks = list(_blocks(unix_lines(text)))
    return tuple(_recipient(block) for block in blocks if _names_recipient(block))[:RECIPIENTS_LIMIT]


def _names_recipient(block: Mapping[str, str]) -> bool:
    return any(name in block for name in _NAMES_RECIPIENT)


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """Yield one block per recipient.

    Some servers put a blank line between all fields, some none between blocks.
    """
    block: dict[str, str] = {}
    is_after_blank = False
    for line in re.sub(r"\n[ \t]+(?=\S)", " ", text).split("\n", FIELDS_LIMIT)[:FIELDS_LIMIT]:
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if not line.strip():
            is_after_blank = True
            continue
        if not colon or not _NAME.match(name):
            continue
        if _is_next_recipient(block, name, is_after_blank):
            yield block
            block = {}
        is_after_blank = False
        block.setdefault(name, value.strip())
    yield block


def _is_next_recipient(block: Mapping[str, str], name: str, is_after_blank: bool) -> bool:
    if name in block and name in _OPENS_RECIPIENT:
        return True
    is_complete = "action" in block and any(each in block for each in _NAMES_RECIPIENT)
    return is_after_blank and is_complete and name in _OPENS_RECIPIENT


def _recipient(block: Mapping[str, str]) -> RecipientReport:
    original = typed_value(block.get("original-recipient", ""))
    final = next((typed_value(block[name]) for name in _NAMES_RECIPIENT if block.get(name)), "")
    diagnostic = " ".join(typed_value(block.get("diagnostic-code", "")).split())[: reasons.DIAGNOSTIC_LIMIT]
    status = _specific(reasons.found_status(block.get("status", "")), reasons.found_status(diagnostic))
    return RecipientReport(
        final_recipient=clean_address(final),
        action=_action(block.get("action", ""), status),
        status=status,
        diagnostic=diagnostic,
        original_recipient=clean_address(original) or None,
    )


def _specific(reported: str, diagnosed: str) -> str:
    """Return the specific status. Some servers report a bare 5.0.0 and the real one in the diagnostic."""
    return diagnosed or reported if reported.endswith(".0.0") or not reported else reported


def _action(written: str, status: str) -> str:
    word = written.lower().strip()[:40]
    if word.startswith(_FAILED):
        return "failed"
    if word.startswith(_DELAYED):
        return "delayed"
    return word.split()[0] if word else ("failed" if status.startswith("5") else "delayed")
