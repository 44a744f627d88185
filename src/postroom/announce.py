"""An event and the webhook deliveries of it, recorded together in whatever transaction changes the state."""

from collections.abc import Sequence

from postroom import deliveries, events, webhooks
from postroom.attachments import Attachment
from postroom.events import Fate
from postroom.messages import Document
from postroom.storage.database import Tx


def announce(
    tx: Tx,
    account_id: str,
    kind: str,
    document: Document,
    files: Sequence[Attachment],
    base_url: str,
    now: int,
    fate: Fate | None = None,
) -> list[str]:
    """Gives the bells to ring after the commit."""
    event = events.record(tx, account_id, kind, document, files, base_url, now, fate)
    is_queued = webhooks.enqueue(tx, event, now)
    return [events.bell(account_id), deliveries.WEBHOOK_BELL] if is_queued else [events.bell(account_id)]
