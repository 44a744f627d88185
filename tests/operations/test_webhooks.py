"""Webhooks: posted again only to those of the account, with a bell for the courier and a line in the log."""

from contextlib import closing

import pytest

from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.errors import NotFound
from postroom.events import event_log, webhooks
from postroom.events.event_log import Event
from postroom.mailbox.inboxes import Inbox
from postroom.operations import webhooks as verbs
from postroom.operations.webhooks import NewWebhook
from postroom.queue import deliveries
from postroom.storage.database import Database, Tx
from tests.doubles import START
from tests.operations.callers import ADDRESS, make_caller, recorded
from tests.stored import make_inbox, put_mail

HOOK = NewWebhook("https://example.com/hook")


def prepare(tx: Tx) -> tuple[Inbox, Caller, Event]:
    """An inbox whose account has a webhook, and the event of a mail that came."""
    inbox = make_inbox(tx)
    caller = make_caller(tx, Scope(inbox.account_id))
    verbs.put_webhook(tx, caller, HOOK, START)
    put_mail(tx, inbox)
    event_id = event_log.last_id(tx, caller.scope)
    assert event_id is not None
    event = event_log.find(tx, event_id)
    assert event is not None
    return inbox, caller, event


@pytest.mark.sqlite_alone
async def test_an_event_is_posted_again_to_a_webhook_of_the_account_alone(db: Database) -> None:
    inbox, caller, event = await db.write(prepare)
    stranger = await db.write(lambda tx: make_inbox(tx, "stranger"))
    other = await db.write(lambda tx: make_caller(tx, Scope(stranger.account_id)))
    await db.write(verbs.put_webhook, other, HOOK, START)
    with pytest.raises(NotFound):
        await db.write(verbs.replay_event, caller, event, stranger.account_id, START)
    with closing(db.listen(deliveries.WEBHOOK_BELL)) as subscription:
        assert await db.write(verbs.replay_event, caller, event, inbox.account_id, START) == HOOK.url
        assert await subscription.wait(120)
    page = await db.read(verbs.list_webhook_deliveries, caller, verbs.DeliveryQuery())
    again = page.data[0]
    assert (page.total, again.event_id, again.url) == (2, event.id, HOOK.url)
    assert (await db.read(recorded, inbox.account_id))[-1] == (
        *("webhook.sent_again", again.id, ADDRESS),
        *(None, None),
    )


async def test_what_failed_is_sent_again_with_a_bell_and_a_line_in_the_log(db: Database) -> None:
    inbox, caller, _ = await db.write(prepare)
    account_id = inbox.account_id
    [posted] = (await db.read(verbs.list_webhook_deliveries, caller, verbs.DeliveryQuery())).data

    def fail(tx: Tx) -> None:
        tx.run("update deliveries set state = 'failed' where id = :id", id=posted.id)

    with closing(db.listen(deliveries.WEBHOOK_BELL)) as subscription:
        await db.write(fail)
        assert await db.write(verbs.retry_some_failed, caller, START, START) == 1
        assert await subscription.wait(120)
        assert await db.write(verbs.retry_some_failed, caller, START, START) == 0
        await db.write(fail)
        shown = await db.write(verbs.retry_webhook_delivery, caller, posted.id, START)
        assert await subscription.wait(120)
    assert (shown.id, shown.state) == (posted.id, "pending")
    lines = await db.read(recorded, account_id)
    assert [(action, target) for action, target, *_ in lines] == [
        ("webhook.set", account_id),
        ("webhook.sent_again", account_id),
        ("webhook.sent_again", posted.id),
    ]


async def test_secrets_are_made_anew_and_shown_once_but_never_in_the_log(db: Database) -> None:
    inbox, caller, _ = await db.write(prepare)
    await db.write(lambda tx: webhooks.put(tx, inbox.id, inbox.account_id, HOOK.url, None, None, START))
    first = (await db.write(verbs.rotate_webhook_secret, caller, START)).secret
    second = (await db.write(verbs.rotate_inbox_secret, caller, inbox, START)).webhook_secret
    await db.write(verbs.put_webhook, caller, HOOK, START)
    await db.write(verbs.delete_webhook, caller, START)
    assert [line[:2] + line[3:] for line in await db.read(recorded, inbox.account_id)] == [
        ("webhook.set", inbox.account_id, None, None),
        ("webhook.secret_rotated", inbox.account_id, None, None),
        ("webhook.secret_rotated", inbox.id, inbox.pod_id, inbox.id),
        ("webhook.set", inbox.account_id, None, None),
        ("webhook.removed", inbox.account_id, None, None),
    ]
    log = await db.read(
        lambda tx: str([(row["before"], row["after"]) for row in tx.all("select * from audit")])
    )
    assert "whsec" in first
    assert first not in log
    assert second not in log
    assert HOOK.url in log
