"""Inboxes and keys over REST."""

from msgspec import UNSET

from postroom import inboxes, keys
from postroom.web import shapes
from postroom.web.body import InboxChange, NewInbox, NewKey, Page
from postroom.web.call import Call, require_reach


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
    found, total = await call.resources.db.read(
        inboxes.list_of_account, call.account_id, query.size, query.offset
    )
    return shapes.InboxPage([shapes.Inbox.of(inbox) for inbox in found], total)


async def get_inbox(call: Call, inbox_id: str) -> shapes.Inbox:
    """Get an inbox"""
    require_reach(call.caller, inbox_id)
    return shapes.Inbox.of(await call.resources.db.read(inboxes.get, call.account_id, inbox_id))


async def change_inbox(call: Call, inbox_id: str, body: InboxChange) -> shapes.Inbox:
    """Change an inbox; null clears a field"""
    if body.display_name is UNSET:
        return shapes.Inbox.of(await call.resources.db.read(inboxes.get, call.account_id, inbox_id))
    inbox = await call.resources.db.write(inboxes.rename, call.account_id, inbox_id, body.display_name)
    return shapes.Inbox.of(inbox)


async def delete_inbox(call: Call, inbox_id: str) -> None:
    """Delete an inbox and all it holds"""
    await call.resources.db.write(inboxes.remove, call.account_id, inbox_id, call.now())


async def create_inbox_key(call: Call, inbox_id: str, body: NewKey) -> shapes.CreatedApiKey:
    """Create a key that reaches this inbox alone"""
    token = keys.new_token()
    key = await call.resources.db.write(
        inboxes.add_key, call.account_id, inbox_id, body.name, token, call.now()
    )
    return shapes.CreatedApiKey.of(key, token)


async def list_inbox_keys(call: Call, inbox_id: str, query: Page) -> shapes.ApiKeyPage:
    """List the keys of an inbox, oldest first"""
    found, total = await call.resources.db.read(
        inboxes.list_keys, call.account_id, inbox_id, query.size, query.offset
    )
    return shapes.ApiKeyPage([shapes.ApiKey.of(key) for key in found], total)


async def delete_inbox_key(call: Call, inbox_id: str, key_id: str) -> None:
    """Revoke a key of an inbox, at once"""
    await call.resources.db.write(inboxes.remove_key, call.account_id, inbox_id, key_id)
