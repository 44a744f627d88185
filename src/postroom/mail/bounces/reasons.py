"""Why a mail was refused, by code, status and words: for good or not, and whether the address is at fault."""

import re

from postroom.mail.bounces import reason_words

DIAGNOSTIC_LIMIT = 1_000

_ENHANCED_STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.]*\d)")
_REPLY_CODE = re.compile(r"(?<![\d.:])([245][0-5]\d)(?=[ \-:;,)\]]|$)")
_NAME_OR_LINK = re.compile(r"[@/]|\w\.\w")

# About the sender, not about the recipient's address (RFC 3463 section 3.2).
_SENDER_STATUSES = {"5.1.7", "5.1.8", "5.1.9"}
_FULL_STATUS = "5.2.2"
# Statuses under which servers also report an unknown user.
_ANY_REASON = ("5.0.", "5.3.0", "5.4.", "5.5.")
_ANY_REASON_EXACT = {"5.2.0", "5.2.1", "5.7.1"}


def is_hard(status: str, diagnostic: str) -> bool:
    """Whether sending again is pointless: refused for good, and neither full nor merely unreachable."""
    words = plain_words(diagnostic)
    if status == _FULL_STATUS or reason_words.FULL.are_in(words):
        return False
    if status:
        return status.startswith("5") and not (
            status.startswith("5.4.") and reason_words.PASSING.are_in(words)
        )
    code = reply_code(diagnostic)
    if code is not None:
        return code >= 500
    if reason_words.PASSING.are_in(words):
        return False
    return reason_words.NO_SUCH_ADDRESS.are_in(words) or reason_words.POLICY.are_in(words)


def is_about_address(code: int | None, status: str | None, text: str) -> bool:
    """Whether the reason is the address itself: no such user or domain. In doubt it is not."""
    words = plain_words(text)
    if (code is not None and code < 500) or (status or "5").startswith(("2", "4")):
        return False
    if status in _SENDER_STATUSES or is_of_another_kind(words):
        return False
    if status and status.startswith("5.1."):
        return True
    could_be_any_reason = not status or status.startswith(_ANY_REASON) or status in _ANY_REASON_EXACT
    return could_be_any_reason and reason_words.NO_SUCH_ADDRESS.are_in(words)


def is_of_another_kind(words: str) -> bool:
    return any(kind.are_in(words) for kind in (reason_words.POLICY, reason_words.FULL, reason_words.PASSING))


def tells(text: str) -> bool:
    """Whether the text holds a reason: a code, a status or words that are known."""
    if found_status(text) or (reply_code(text) or 0) >= 400:
        return True
    words = plain_words(text)
    return is_of_another_kind(words) or reason_words.NO_SUCH_ADDRESS.are_in(words)


def reply_code(diagnostic: str) -> int | None:
    """The SMTP reply code in a diagnostic such as `550 5.1.1 no such user`."""
    match = _REPLY_CODE.search(diagnostic[:DIAGNOSTIC_LIMIT])
    return int(match[1]) if match else None


def found_status(text: str) -> str:
    match = _ENHANCED_STATUS.search(text[:DIAGNOSTIC_LIMIT])
    return match[1] if match else ""


def plain_words(text: str) -> str:
    """The text without host names, addresses and links, whose letters may say anything."""
    return " ".join(word for word in text[:DIAGNOSTIC_LIMIT].split() if not _NAME_OR_LINK.search(word))
