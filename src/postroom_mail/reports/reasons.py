"""Why an email was refused, by code, status and words: permanently or not, and whose fault it is."""

import re
from enum import Enum

from postroom_mail.reports import reason_words

DIAGNOSTIC_LIMIT = 1_000

_ENHANCED_STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.]*\d)")
_REPLY_CODE = re.compile(r"(?<![\d.:])([245][0-5]\d)(?=[ \-:;,)\]]|$)")
_NAME_OR_LINK = re.compile(r"[@/]|\w\.\w")

# Codes that many servers use for any refusal, an unknown user included.
_ANY_REASON = ("5.0.", "5.3.0", "5.4.", "5.5.")
_ANY_REASON_EXACT = {"5.1.0", "5.2.0", "5.2.1", "5.7.1"}
# About the sender, not the recipient's address (RFC 3463 section 3.2).
_SENDER_STATUSES = {"5.1.7", "5.1.8", "5.1.9"}
_FULL_STATUS = "5.2.2"
_LINK = re.compile(r"https?://|\bwww\.", re.I)
_BLOCK_LIST_LINK = re.compile(
    r"spamhaus|spamcop|sorbs|barracuda|dnsbl|\brbl|block-?list|black-?list|blocked|abuse|postmaster|reputation"
    r"|senderscore|uceprotect|spam|cbl\b|njabl|ordb|mail-abuse|unblock|delist",
    re.I,
)
_LINK_LETTERS = re.compile(r"(?:https?://|www\.)[^\s<>\"']{1,300}", re.I)


class Fault(Enum):
    """Whose fault a permanent refusal is. Only RECIPIENT suppresses at once."""

    RECIPIENT = "recipient"
    """The address: no such user, no such domain, an account that is closed."""
    UNCLEAR = "unclear"
    """Refused for good without saying why, or with two reasons at once."""
    OTHER = "other"
    """The sender, the content, a policy, a full mailbox, or something that passes."""


def is_hard(status: str, diagnostic: str) -> bool:
    """Return whether retrying is pointless: refused permanently, and neither full nor merely unreachable."""
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
    return (
        reason_words.NO_SUCH_ADDRESS.are_in(words)
        or reason_words.names_mailbox(words, status)
        or reason_words.POLICY.are_in(words)
    )


def fault_of(code: int | None, status: str | None, text: str) -> Fault:
    """Return the fault, RECIPIENT only if the reason names the recipient's address."""
    if (code is not None and code < 500) or (status or "5").startswith(("2", "4")):
        return Fault.OTHER
    words = plain_words(text)
    if status in _SENDER_STATUSES or is_about_sender(words) or _links_to_block_list(text):
        return Fault.OTHER
    if reason_words.says_either(words):
        return Fault.UNCLEAR
    if is_of_another_kind(words):
        return Fault.OTHER
    return _fault_by_status(status or "", words, has_link=_LINK.search(text) is not None)


def _fault_by_status(status: str, words: str, *, has_link: bool) -> Fault:
    could_be_any_reason = not status or status.startswith(_ANY_REASON) or status in _ANY_REASON_EXACT
    if not could_be_any_reason:
        return Fault.RECIPIENT if status.startswith("5.1.") else Fault.OTHER
    if reason_words.NO_SUCH_ADDRESS.are_in(words):
        return Fault.RECIPIENT
    if status == "5.7.1":
        return Fault.OTHER
    names_mailbox = not has_link and reason_words.names_mailbox(words, status)
    return Fault.RECIPIENT if names_mailbox else Fault.UNCLEAR


def is_about_sender(words: str) -> bool:
    """Return whether it names the envelope sender, the From field or the sending server."""
    return reason_words.SENDER.are_in(words)


def _links_to_block_list(text: str) -> bool:
    links = _LINK_LETTERS.findall(text[:DIAGNOSTIC_LIMIT])
    return any(_BLOCK_LIST_LINK.search(link) for link in links)


def is_of_another_kind(words: str) -> bool:
    return any(kind.are_in(words) for kind in (reason_words.POLICY, reason_words.FULL, reason_words.PASSING))


def is_telling(text: str) -> bool:
    """Return whether the text has a reason: a code, a status or known words."""
    if found_status(text) or (reply_code(text) or 0) >= 400:
        return True
    words = plain_words(text)
    return is_of_another_kind(words) or reason_words.NO_SUCH_ADDRESS.are_in(words)


def reply_code(diagnostic: str) -> int | None:
    """Return the SMTP reply code in a diagnostic such as `550 5.1.1 no such user`."""
    match = _REPLY_CODE.search(diagnostic[:DIAGNOSTIC_LIMIT])
    return int(match[1]) if match else None


def found_status(text: str) -> str:
    match = _ENHANCED_STATUS.search(text[:DIAGNOSTIC_LIMIT])
    return match[1] if match else ""


def plain_words(text: str) -> str:
    """Remove host names, addresses and links, whose words may say anything."""
    return " ".join(word for word in text[:DIAGNOSTIC_LIMIT].split() if not _NAME_OR_LINK.search(word))
