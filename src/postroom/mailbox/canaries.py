"""The line by which an agent learns the canary of its inbox."""

from msgspec import UNSET, UnsetType

from postroom.mailbox import inboxes
from postroom.storage.database import Tx
from postroom_mail.screening import canary


def find_line(tx: Tx, inbox_id: str) -> str | UnsetType:
    inbox = inboxes.find(tx, inbox_id)
    return UNSET if inbox is None or inbox.canary is None else canary.line(inbox.canary)
