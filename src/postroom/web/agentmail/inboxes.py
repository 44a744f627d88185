"""Inboxes of /v0."""

import secrets
from functools import partial

from msgspec import UNSET

from postroom.accounts import pods
from postroom.accounts.keys import Caller
from postroom.accounts.rules import pauses
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.mailbox import inboxes, keyset_listing
from postroom.mailbox.inboxes import Inbox
from postroom.operations import holds as pausing
from postroom.operations import inboxes as verbs
from postroom.resources import Tx
from postroom.web.agentmail import paging, shapes

ACTIVE, PAUSED = "active", "paused"
SEARCHED = 1000  # inboxes that a search looks at


def show(tx: Tx, inbox: Inbox) -> shapes.Inbox:
    is_paused = pauses.find(tx, pauses.scope_of(inbox.scope)) is not None
    return shapes.Inbox(
        pod_id=inbox.pod_id,
        inbox_id=inbox.address,
        email=inbox.address,
        created_at=to_iso(inbox.created_at),
        updated_at=to_iso(inbox.created_at),
        display_name=inbox.display_name,
        client_id=inbox.client_id,
        status=PAUSED if is_paused else None,
        metadata=inboxes.decode_metadata(inbox.metadata) or None,
    )


def create_inbox(
    tx: Tx, caller: Caller, place: Scope, body: shapes.NewInbox, config: Config, now: int
) -> shapes.Inbox:
    """Create an inbox. The same client_id again returns the first one."""
    pod_id = pods.choose(tx, caller.scope, place.pod_id)
    pods.lock(tx, pod_id)
    if body.client_id is not None:
        known = keyset_listing.find_inbox_by_client_id(tx, pod_id, body.client_id)
        if known is not None:
            return show(tx, known)
    new = verbs.NewInbox(
        mailbox_name=(body.username or f"agent-{secrets.token_hex(6)}").lower(),
        display_name=body.display_name,
        domain=body.domain,
        pod_id=pod_id,
        metadata=UNSET if body.metadata is None else body.metadata,
        client_id=body.client_id,
    )
    made = verbs.create_inbox(tx, caller, new, config, now)
    return set_status(tx, caller, inboxes.get(tx, caller.scope, made.id), body.status, config, now)


def set_status(
    tx: Tx, caller: Caller, inbox: Inbox, status: str | None, config: Config, now: int
) -> shapes.Inbox:
    """Set the status. A paused inbox holds what it sends, and still receives."""
    is_paused = pauses.find(tx, pauses.scope_of(inbox.scope)) is not None
    if status == PAUSED and not is_paused:
        pausing.put_pause(tx, caller, inbox.scope, config, now)
    if status == ACTIVE and is_paused:
        pausing.delete_pause(tx, caller, inbox.scope, now)
    return show(tx, inbox)


def list_inboxes(tx: Tx, place: Scope, query: shapes.PageQuery) -> shapes.Page:
    found = keyset_listing.list_inboxes(tx, place, paging.span_of(query))
    return paging.page_of("inboxes", found, query, partial(show, tx))


def search_inboxes(tx: Tx, place: Scope, query: shapes.SearchQuery) -> shapes.Page:
    """Finds inboxes by the beginnings of words in address or name; a page looks at a fixed number of them."""
    looked_at = shapes.PageQuery(SEARCHED, query.page_token, query.ascending)
    found = keyset_listing.list_inboxes(tx, place, paging.span_of(looked_at))
    seen, behind = paging.cut(found, SEARCHED, paging.place_of)
    asked = query.q.casefold().split()
    matching = [inbox for inbox in seen if matches(inbox, asked)]
    kept = matching[: query.limit]
    if len(matching) > query.limit:
        behind = paging.place_of(kept[-1])
    kept.sort(key=lambda inbox: inbox.address != query.q.casefold())
    return paging.page("inboxes", [show(tx, inbox) for inbox in kept], query.limit, behind)


def matches(inbox: Inbox, asked: list[str]) -> bool:
    address, name = inbox.address, (inbox.display_name or "").casefold()
    words = [address, *address.replace("@", " ").replace(".", " ").replace("-", " ").split(), *name.split()]
    return all(any(word.startswith(each) for word in words) for each in asked)


def change_inbox(
    tx: Tx, caller: Caller, inbox: Inbox, body: shapes.InboxChange, config: Config, now: int
) -> shapes.Inbox:
    if body == shapes.InboxChange() or body.metadata == {}:
        raise BadRequest("The body has nothing to change.", field="metadata")
    status = None if body.status is UNSET else body.status
    change = verbs.InboxChange(display_name=body.display_name, metadata=body.metadata)
    verbs.change_inbox(tx, caller, inbox, change, config, now)
    return set_status(tx, caller, inboxes.get(tx, caller.scope, inbox.id), status, config, now)
