"""Infected messages: clamd found something in them, and nothing gives their bytes away unasked."""

from postroom.errors import Infected
from postroom.mailbox import documents, messages
from postroom.mailbox.documents import Document
from postroom.storage.database import Tx

SIGNAL = "infected"


def name_in(document: Document) -> str:
    """Return what clamd found first, in a file or in the whole; "" if nothing."""
    return next((each.excerpt for each in document.signals if each.name == SIGNAL), "")


def find_name(tx: Tx, message_id: str) -> str:
    message = messages.find(tx, message_id)
    return "" if message is None else name_in(documents.decode(message.document))


def require_whole(tx: Tx, message_id: str) -> None:
    """Raises Infected if the message may not be passed on as it came."""
    name = find_name(tx, message_id)
    if name:
        raise Infected(
            f"clamd found {name} in this email. A key with the permission manage can get it as it came with"
            " ?infected=yes."
        )
