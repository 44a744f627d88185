"""What speaks against a held email: messages of its thread that were judged suspicious or malicious."""

from hashlib import blake2s

import msgspec
from msgspec import Struct

from postroom.accounts.rules import approval
from postroom.mailbox import documents, messages, threads
from postroom.mailbox.documents import Document
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import Message
from postroom.storage.database import Tx

LOOKED_AT = 50  # the newest messages of a thread
SHOWN = 5
FLAGGED = ("malicious", "suspicious")  # worst first


class ThreadFindings(Struct, frozen=True):
    """`seal` stands for all that a person was warned of, about this content: a later finding changes it."""

    seal: str
    worst: str  # a verdict
    judged: list[Document]  # worst first; empty if they are gone, or if an email from elsewhere is forwarded


def find(tx: Tx, hold: Hold, thread_id: str) -> ThreadFindings | None:
    """Return None if nothing speaks against it."""
    is_risky = threads.is_risky(tx, thread_id)
    if not is_risky and approval.RISK not in hold.reasons:
        return None
    newest = messages.list_of_thread(tx, thread_id, LOOKED_AT, 0, "desc").messages if is_risky else []
    outlines = messages.list_outlines(tx, [each.id for each in newest])
    flagged = [each for each in map(read, outlines) if each.verdict in FLAGGED]
    judged = sorted(flagged, key=lambda each: FLAGGED.index(str(each.verdict)))
    warned_of = [hold.message_id, hold.content_hash, sorted((each.id, each.verdict) for each in judged)]
    return ThreadFindings(
        seal=blake2s(msgspec.json.encode(warned_of), digest_size=16).hexdigest(),
        worst=str(judged[0].verdict) if judged else "suspicious",
        judged=judged[:SHOWN],
    )


def read(message: Message) -> Document:
    return documents.decode(message.document)
