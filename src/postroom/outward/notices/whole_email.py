"""The email of a notification as text: recipients, subject, text, files, and what speaks against it."""

from msgspec import Struct

from postroom.errors import ApiError
from postroom.events.notifications import HELD, Notification
from postroom.mailbox import attachments, documents, holds, messages, raw_mails
from postroom.mailbox.documents import Document
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import Message
from postroom.outward.holding import findings
from postroom.outward.holding.findings import ThreadFindings
from postroom.processes import pools
from postroom.resources import Resources
from postroom.storage.database import Tx
from postroom_mail.html.text import revealed
from postroom_mail.writing import content_view

TEXT_CHARACTERS = 20_000
ADDRESSES_CHARACTERS = 2_000
SIGNALS = 10


class NotifiedEmail(Struct, frozen=True):
    """A stored email, its hold if it waits for a decision, and what was found in its thread."""

    message: Message
    document: Document
    hold: Hold | None
    files: list[str]
    found: ThreadFindings | None


async def read_email(resources: Resources, note: Notification) -> str:
    """Return it whole, or "" if it is gone, or no longer waits."""
    about = await resources.db.read(look_up, note)
    if about is None:
        return ""
    if about.hold is None:
        return received_text(about)
    try:
        raw = await raw_mails.read(resources, about.message.id, with_trace=False)
    except ApiError:  # deleted a moment ago
        return ""
    return await pools.READING.run(held_text, about, about.hold, raw)


def look_up(tx: Tx, note: Notification) -> NotifiedEmail | None:
    message = messages.find(tx, note.message_id) if note.message_id else None
    if message is None:
        return None
    hold = holds.find(tx, message.id) if note.kind == HELD else None
    if note.kind == HELD and (hold is None or hold.state != holds.HELD):
        return None
    files = attachments.list_of_messages(tx, [message.id], with_text=False).get(message.id, [])
    found = None if hold is None else findings.find(tx, hold, message.thread_id)
    document = documents.decode(message.document)
    return NotifiedEmail(message, document, hold, [each.filename for each in files], found)


def held_text(about: NotifiedEmail, hold: Hold, raw: bytes) -> str:
    """Return the text as in the notice to a reviewer, from the bytes that the content hash covers."""
    shown = content_view.to_text(content_view.view(raw, hold.bcc), TEXT_CHARACTERS)
    warning = "\n".join(_warnings(about.found))
    return f"Held because: {', '.join(hold.reasons)}\n{warning}\n{shown}".replace("\n\n\n", "\n\n")


def _warnings(found: ThreadFindings | None) -> list[str]:
    if found is None:
        return []
    judged = [
        f"- {revealed(each.subject)} ({each.verdict}): {'; '.join(_reasons(each))}" for each in found.judged
    ]
    return [f"This thread was judged {found.worst}.", *judged, ""]


def _reasons(document: Document) -> list[str]:
    return [signal.reason for signal in document.signals[:SIGNALS]] or ["see the thread"]


def received_text(about: NotifiedEmail) -> str:
    document = about.document
    rows = [
        ("From", document.from_addr),
        ("To", document.header_to or document.to_addr),
        ("Cc", ", ".join(document.cc)),
        ("Subject", document.subject),
        *(("File", name) for name in about.files),
    ]
    head = "\n".join(
        f"{name + ':':<9} {revealed(value[:ADDRESSES_CHARACTERS])}" for name, value in rows if value
    )
    why = "\n".join(f"- {reason}" for reason in _reasons(document))
    text = content_view.quoted(revealed(document.body_text[: TEXT_CHARACTERS + 1]), TEXT_CHARACTERS)
    return f"Judged {document.verdict}:\n{why}\n\n{head}\n\n{text or '(no text)'}"
