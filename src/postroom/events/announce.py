"""Records an event and its webhook deliveries, in the transaction that changes the state."""

from collections.abc import Sequence

from postroom.events import event_log, notifications, webhooks
from postroom.events.payload import NewEvent, News, SystemNotice
from postroom.mailbox import contact_counting, usage
from postroom.mailbox.contact_counting import CountedMail
from postroom.mailbox.usage import UsageGrowth
from postroom.processes import process_metrics
from postroom.queue import deliveries
from postroom.storage.database import Tx

# Kinds of events that are counted by day, and the counter of each.
COUNTED = {
    "message.received": usage.RECEIVED,
    "message.sent": usage.SENT,
    "message.failed": usage.FAILED,
    "message.bounced": usage.BOUNCED,
    "message.complained": usage.COMPLAINED,
    "message.held": usage.HELD,
    "message.blocked": usage.BLOCKED,
}

EXCHANGED = ("message.received", "message.sent")


def announce(tx: Tx, news: NewEvent, base_url: str) -> list[str]:
    """Records an event, and rings the bells of its listeners after the commit. Returns these bells."""
    return announce_all(tx, [news], base_url)[0]


def announce_all(tx: Tx, announced: Sequence[News], base_url: str) -> list[list[str]]:
    """Records events, and rings the bells of their listeners after the commit. Returns the bells of each."""
    of_messages = [news for news in announced if isinstance(news, NewEvent)]
    usage.count_all(tx, [_to_use(news) for news in of_messages if news.kind in COUNTED])
    recorded = event_log.record_all(tx, announced, base_url)
    contact_counting.count_all(tx, [_to_counted_mail(news) for news in of_messages if news.kind in EXCHANGED])
    for news in announced:
        process_metrics.record_event(news.kind)
    queued = webhooks.enqueue_all(tx, recorded)
    notifications.record_events(tx, of_messages, base_url)
    tx.ring(*dict.fromkeys(event_log.bell(event.account_id) for event in recorded))
    if queued:
        tx.ring(deliveries.WEBHOOK_BELL)
    return [
        [event_log.bell(event.account_id), deliveries.WEBHOOK_BELL]
        if event.id in queued
        else [event_log.bell(event.account_id)]
        for event in recorded
    ]


def count_unannounced(tx: Tx, announced: Sequence[NewEvent]) -> None:
    """Counts what happened without an event, which a rule has forbidden."""
    usage.count_all(tx, [_to_use(news) for news in announced])


def announce_notice(tx: Tx, notice: SystemNotice) -> None:
    """Announce an event that is about no message."""
    announce_all(tx, [notice], base_url="")


def _to_use(news: NewEvent) -> UsageGrowth:
    inbox_id = news.document.inbox_id
    return UsageGrowth(inbox_id, news.account_id, news.pod_id, COUNTED[news.kind], 1, news.occurred_at)


def _to_counted_mail(news: NewEvent) -> CountedMail:
    return CountedMail(news.account_id, news.pod_id, news.document, news.occurred_at, news.own_addresses)
