"""The inboxes that fields of a body name. An unknown or foreign one is an error of the body."""

from postroom.accounts.scope import Scope
from postroom.errors import BadRequest, NotFound
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.storage.database import Tx


def get_named(tx: Tx, scope: Scope, inbox_id: str, field: str = "inboxId") -> Inbox:
    try:
        return inboxes.get(tx, scope, inbox_id)
    except NotFound:
        raise BadRequest(
            f"{field} is not an inbox of this API key. GET /v1/inboxes lists them.", field=field
        ) from None
