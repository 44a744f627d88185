"""Inboxes over REST."""

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from postroom.accounts import pods
from postroom.accounts.rules import approval as approvals
from postroom.accounts.rules import limits
from postroom.events import webhooks
from postroom.fields import PageQuery
from postroom.mailbox import inboxes
from postroom.mailbox.inboxes import Inbox
from postroom.web.api.events.webhooks import require_allowed
from postroom.web.call import Call, Tx
from postroom.web.interface.bodies.body import InboxChange, NewInbox
from postroom.web.interface.shapes import shapes

WithSecret = tuple[Inbox, str | UnsetType]  # an inbox, and the secret of its webhook if one was made


async def create_inbox(call: Call, body: NewInbox) -> shapes.Inbox:
    """Create an inbox"""
    if body.webhook_url is not None:
        await require_allowed(call.resources, body.webhook_url)
    return shapes.Inbox.of(*await call.resources.db.write(add, call, body))


def add(tx: Tx, call: Call, body: NewInbox) -> WithSecret:
    inbox = inboxes.add(
        tx,
        call.account_id,
        body.mailbox_name,
        body.domain,
        body.display_name,
        call.resources.config.domain,
        call.now(),
        pods.choose(tx, call.reach, body.pod_id),
        call.reach,
    )
    made: WithSecret = inbox, UNSET
    if body.webhook_url is not None:
        made = change_webhook(tx, inbox, body.webhook_url, call.now())
    call.record(tx, "inbox.created", inbox.id, within=inbox.reach, after=shapes.Inbox.of(made[0]))
    return made


async def list_inboxes(call: Call, query: PageQuery) -> shapes.InboxPage:
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

    def work(tx: Tx) -> WithSecret:
        before = inboxes.get(tx, call.reach, inbox_id)
        inbox, secret = apply(before, body), UNSET
        inboxes.put(tx, inbox)
        changed: WithSecret = inbox, secret
        if body.webhook_url is not UNSET:
            changed = change_webhook(tx, inbox, body.webhook_url, call.now())
        shown = shapes.Inbox.of(changed[0])
        call.record(
            tx, "inbox.changed", inbox.id, within=inbox.reach, before=shapes.Inbox.of(before), after=shown
        )
        return changed

    return shapes.Inbox.of(*await call.resources.db.write(work))


def apply(inbox: Inbox, body: InboxChange) -> Inbox:
    if body.display_name is not UNSET:
        inbox = replace(inbox, display_name=body.display_name)
    if body.approval is not UNSET:
        asked = body.approval and approvals.require_valid(body.approval)
        inbox = replace(inbox, approval=approvals.encode(asked))
    if body.limits is not UNSET:
        budget = body.limits and limits.require_valid(body.limits)
        inbox = replace(inbox, limits=limits.encode(budget))
    if body.metadata is not UNSET:
        inbox = replace(inbox, metadata=inboxes.encode_metadata(body.metadata))
    if body.retention_days is not UNSET:
        inbox = replace(inbox, retention_days=body.retention_days)
    return inbox


def change_webhook(tx: Tx, inbox: Inbox, url: str | None, now: int) -> WithSecret:
    changed = inboxes.set_webhook_url(tx, inbox, url)
    if url is None:
        webhooks.remove(tx, inbox.id)
        return changed, UNSET
    webhook, is_new = webhooks.put(tx, inbox.id, inbox.account_id, url, None, None, now)
    return changed, webhook.secret if is_new else UNSET


async def delete_inbox(call: Call, inbox_id: str) -> None:
    """Delete an inbox and all it holds"""

    def work(tx: Tx) -> None:
        inbox = inboxes.remove(tx, call.reach, inbox_id, call.now())
        call.record(tx, "inbox.deleted", inbox.id, within=inbox.reach, before=shapes.Inbox.of(inbox))

    await call.resources.db.write(work)
    call.resources.db.ring(inboxes.GONE)
