"""Inboxes and keys over REST."""

from msgspec import UNSET, UnsetType

from postroom.accounts import keys
from postroom.events import webhooks
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.web import shapes
from postroom.web.api.webhooks import require_allowed
from postroom.web.body import InboxChange, NewInbox, NewKey, Page
from postroom.web.call import Call, Tx


async def who_am_i(call: Call) -> shapes.Me:
    """Who a key speaks for"""
    return shapes.Me.of(call.caller)


async def create_inbox(call: Call, body: NewInbox) -> shapes.Inbox:
    """Create an inbox"""
    inbox = await call.resources.db.write(
        inboxes.add,
        call.account_id,
        body.mailbox_name,
        body.domain,
        body.display_name,
        call.resources.config.domain,
        call.now(),
    )
    return shapes.Inbox.of(inbox)


async def list_inboxes(call: Call, query: Page) -> shapes.InboxPage:
    """List inboxes, newest first"""
    found, total = await call.read_page(
        query.offset, lambda tx: inboxes.list_within(tx, call.reach, query.limit, query.offset)
    )
    return shapes.InboxPage([shapes.Inbox.of(inbox) for inbox in found], total)


async def get_inbox(call: Call, inbox_id: str) -> shapes.Inbox:
    """Get an inbox"""
    return shapes.Inbox.of(await call.resources.db.read(inboxes.get, call.reach, inbox_id))


async def change_inbox(call: Call, inbox_id: str, body: InboxChange) -> shapes.Inbox:
    """Change an inbox; null clears a field"""
    if isinstance(body.webhook_url, str):
        await require_allowed(call.resources, body.webhook_url)

    def work(tx: Tx) -> tuple[Inbox, str | UnsetType]:
        inbox = inboxes.get(tx, call.reach, inbox_id)
        if body.display_name is not UNSET:
            inbox = inboxes.rename(tx, inbox, body.display_name)
        if body.webhook_url is UNSET:
            return inbox, UNSET
        return change_webhook(tx, inbox, body.webhook_url, call.now())

    return shapes.Inbox.of(*await call.resources.db.write(work))


def change_webhook(tx: Tx, inbox: Inbox, url: str | None, now: int) -> tuple[Inbox, str | UnsetType]:
    """The inbox, and the secret if one was made."""
    changed = inboxes.set_webhook_url(tx, inbox, url)
    if url is None:
        webhooks.remove(tx, inbox.id)
        return changed, UNSET
    webhook, is_new = webhooks.put(tx, inbox.id, inbox.account_id, url, None, None, now)
    return changed, webhook.secret if is_new else UNSET


async def delete_inbox(call: Call, inbox_id: str) -> None:
    """Delete an inbox and all it holds"""
    await call.resources.db.write(inboxes.remove, call.reach, inbox_id, call.now())
    call.resources.db.ring(inboxes.GONE)


async def create_inbox_key(call: Call, inbox_id: str, body: NewKey) -> shapes.CreatedApiKey:
    """Create a key that reaches this inbox alone"""
    token = keys.new_token()
    key = await call.resources.db.write(inboxes.add_key, call.reach, inbox_id, body.name, token, call.now())
    return shapes.CreatedApiKey.of(key, token)


async def list_inbox_keys(call: Call, inbox_id: str, query: Page) -> shapes.ApiKeyPage:
    """List the keys of an inbox, oldest first"""
    found, total = await call.resources.db.read(
        inboxes.list_keys, call.reach, inbox_id, query.limit, query.offset
    )
    return shapes.ApiKeyPage([shapes.ApiKey.of(key) for key in found], total)


async def delete_inbox_key(call: Call, inbox_id: str, key_id: str) -> None:
    """Revoke a key of an inbox, at once"""
    await call.resources.db.write(inboxes.remove_key, call.reach, inbox_id, key_id)
