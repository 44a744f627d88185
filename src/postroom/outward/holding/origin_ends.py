"""Both ends of a value that a held email carries: where it came from, and where it would go, side by side."""

import re

from msgspec import Struct

from postroom.mailbox import documents, messages
from postroom.mailbox.documents import Document
from postroom.mailbox.holds import Hold
from postroom.storage.database import Tx
from postroom_mail.html.text import visible

AROUND = 60  # characters shown on each side of a value
SEARCHED = 100_000
LONGEST_NUMBER = 64  # letters and digits of a value, from its end


LABELS = {
    "iban": "Account number (IBAN)",
    "card": "Card number",
    "crypto": "Cryptocurrency address",
    "telephone": "Telephone number",
    "code": "One-time code",
    "phrase": "Words",
    "email": "Whole email",
}


class OriginEnds(Struct, frozen=True):
    """A value with the words around it on both sides; "" where it is not written so, or is gone."""

    value: str
    kind: str  # in words
    message_id: str
    thread_id: str
    from_addr: str
    subject: str
    created_at: str
    came: str
    goes: str


def find(tx: Tx, hold: Hold) -> list[OriginEnds]:
    """Return what an approver compares, for each value that a send is held for."""
    if not hold.origins:
        return []
    sent = _read(tx, hold.message_id)
    found = []
    for origin in hold.origins:
        source = _read(tx, origin.message_id)
        found.append(
            OriginEnds(
                value=visible(origin.value),
                kind=LABELS.get(origin.kind, origin.kind.capitalize()),
                message_id=origin.message_id,
                thread_id="" if source is None else source.thread_id,
                from_addr="" if source is None else source.from_addr,
                subject="" if source is None else source.subject,
                created_at="" if source is None else source.created_at,
                came="" if source is None else around(source.body_text, origin.value),
                goes="" if sent is None else around(sent.body_text, origin.value),
            )
        )
    return found


def around(text: str, value: str) -> str:
    """Return the words around a value, on one line; "" if the text does not have its letters and digits."""
    text = text[:SEARCHED]
    found = _pattern(value).search(text)
    if found is None:
        return ""
    start, end = max(0, found.start() - AROUND), found.end() + AROUND
    said = " ".join(visible(text[start:end]).split())
    return f"{'… ' if start else ''}{said}{' …' if end < len(text) else ''}"


def _pattern(value: str) -> re.Pattern[str]:
    """Return a pattern for the value as it is written, and of numbers with other signs between."""
    signs = list(filter(str.isalnum, value))
    if sum(map(str.isdigit, signs)) * 2 < len(signs):
        return re.compile(re.escape(value), re.IGNORECASE)
    return re.compile(r"[\W_]{0,3}".join(map(re.escape, signs[-LONGEST_NUMBER:])), re.IGNORECASE)


def _read(tx: Tx, message_id: str) -> Document | None:
    message = messages.find(tx, message_id)
    return None if message is None else documents.decode(message.document)
