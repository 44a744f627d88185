"""An event and the webhook deliveries of it, recorded together in whatever transaction changes the state."""

from collections.abc import Sequence

from postroom.events import events, webhooks
from postroom.events.payload import News
from postroom.queue import deliveries
from postroom.storage.database import Tx


def announce(tx: Tx, news: News, base_url: str) -> list[str]:
    """Gives the bells to ring after the commit."""
    return announce_all(tx, [news], base_url)[0]


def announce_all(tx: Tx, told: Sequence[News], base_url: str) -> list[list[str]]:
    """Gives for each the bells to ring after the commit."""
    recorded = events.record_all(tx, told, base_url)
    queued = webhooks.enqueue_all(tx, recorded)
    return [
        [events.bell(event.account_id), deliveries.WEBHOOK_BELL]
        if event.id in queued
        else [events.bell(event.account_id)]
        for event in recorded
    ]
