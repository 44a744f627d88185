"""Webhooks of /v0: those of the list, told in its words and signed by the names of Svix."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msgspec import UNSET

from postroom.accounts import accounts
from postroom.accounts.keys import Caller
from postroom.accounts.reach import Reach
from postroom.clock import to_iso
from postroom.errors import NotFound
from postroom.events import webhook_list
from postroom.events.webhooks import Webhook
from postroom.fields import RowPlace
from postroom.mailbox import inboxes
from postroom.operations.ways import webhook_list as verbs
from postroom.resources import Resources, Tx
from postroom.web.agentmail import events, names, paging, shapes
from postroom.web.agentmail.setup import setup_shapes
from postroom.web.api.events import webhooks as checks


async def require_allowed_url(
    resources: Resources, body: setup_shapes.NewWebhook | setup_shapes.WebhookChange
) -> dict[str, Any]:
    if body.url is not None:
        await checks.require_allowed(resources, body.url)
    return {}


def show(tx: Tx, webhook: Webhook) -> shapes.Page:
    """With its secret, as its clients expect on every read: only keys that manage come here."""
    addresses = inboxes.addresses_of(tx, webhook.inbox_ids)
    alone = len(webhook.inbox_ids) == 1 and not webhook.pod_ids
    moment = to_iso(webhook.created_at)
    return {
        "webhook_id": webhook.owner,
        "url": webhook.url,
        "event_types": list(webhook.vocabulary) or list(webhook.event_types),
        "inbox_ids": sorted(addresses.values()),
        "pod_ids": list(webhook.pod_ids),
        "inbox_id": next(iter(addresses.values()), None) if alone else None,
        "pod_id": webhook.pod_ids[0] if len(webhook.pod_ids) == 1 and not webhook.inbox_ids else None,
        "secret": webhook.secret,
        "enabled": webhook.enabled,
        "client_id": webhook.client_id,
        "created_at": moment,
        "updated_at": moment,
    }


def get_of(tx: Tx, caller: Caller, webhook_id: str, within: Reach | None = None) -> Webhook:
    webhook = webhook_list.get(tx, caller.account_id, webhook_id)
    if within is not None and not belongs(webhook, within):
        raise NotFound("No such webhook.")
    return webhook


def belongs(webhook: Webhook, within: Reach) -> bool:
    """To an inbox or a pod: it is told of nothing else."""
    if within.inbox_id is not None:
        return webhook.inbox_ids == (within.inbox_id,) and not webhook.pod_ids
    return webhook.pod_ids == (within.pod_id,) and not webhook.inbox_ids


def create_webhook(tx: Tx, caller: Caller, body: setup_shapes.NewWebhook, now: int) -> shapes.Page:
    inbox_ids = names.inbox_ids_of(tx, caller.reach, body.inbox_ids or [], "inbox_ids")
    return create(tx, caller, body, inbox_ids, body.pod_ids or [], now)


def create_webhook_within(
    tx: Tx, caller: Caller, within: Reach, body: setup_shapes.NewWebhook, now: int
) -> shapes.Page:
    if within.inbox_id is not None:
        return create(tx, caller, body, [within.inbox_id], [], now)
    return create(tx, caller, body, [], [within.pod_id or ""], now)


def create(
    tx: Tx,
    caller: Caller,
    body: setup_shapes.NewWebhook,
    inbox_ids: Sequence[str],
    pod_ids: Sequence[str],
    now: int,
) -> shapes.Page:
    """The same client_id again gives the first one."""
    accounts.lock(tx, caller.account_id)
    known = (
        None
        if body.client_id is None
        else webhook_list.find_by_client_id(tx, caller.account_id, body.client_id)
    )
    if known is not None:
        return show(tx, known)
    events.require_known(body.event_types, "event_types")
    new = verbs.NewListedWebhook(
        url=body.url,
        event_types=events.ours(body.event_types) or None,
        inbox_ids=list(inbox_ids),
        pod_ids=list(pod_ids),
        headers=body.headers or {},
        client_id=body.client_id,
    )
    made = verbs.create_webhook(tx, caller, new, now)
    webhook = replace(
        webhook_list.get(tx, caller.account_id, made.id),
        vocabulary=tuple(dict.fromkeys(body.event_types)),
    )
    webhook_list.put(tx, webhook)
    return show(tx, webhook)


def list_webhooks(tx: Tx, caller: Caller, query: shapes.PageQuery) -> shapes.Page:
    return list_of(tx, webhook_list.list_of_account(tx, caller.account_id), query)


def list_webhooks_within(tx: Tx, caller: Caller, within: Reach, query: shapes.PageQuery) -> shapes.Page:
    found = webhook_list.list_of_account(tx, caller.account_id)
    return list_of(tx, [webhook for webhook in found if belongs(webhook, within)], query)


def list_of(tx: Tx, found: Sequence[Webhook], query: shapes.PageQuery) -> shapes.Page:
    part = paging.part_of(found, paging.span_of(query), place_of)
    some, behind = paging.cut(part, query.limit, place_of)
    return paging.page("webhooks", [show(tx, webhook) for webhook in some], query.limit, behind)


def place_of(webhook: Webhook) -> RowPlace:
    return RowPlace(webhook.created_at, webhook.owner)


def get_webhook(tx: Tx, caller: Caller, webhook_id: str) -> shapes.Page:
    return show(tx, get_of(tx, caller, webhook_id))


def get_webhook_within(tx: Tx, caller: Caller, within: Reach, webhook_id: str) -> shapes.Page:
    return show(tx, get_of(tx, caller, webhook_id, within))


def change_webhook(
    tx: Tx, caller: Caller, webhook_id: str, body: setup_shapes.WebhookChange, now: int
) -> shapes.Page:
    return change(tx, caller, get_of(tx, caller, webhook_id), body, now)


def change_webhook_within(
    tx: Tx, caller: Caller, within: Reach, webhook_id: str, body: setup_shapes.WebhookChange, now: int
) -> shapes.Page:
    """What it belongs to stays."""
    webhook = get_of(tx, caller, webhook_id, within)
    kept = setup_shapes.WebhookChange(url=body.url, event_types=body.event_types, enabled=body.enabled)
    return change(tx, caller, webhook, kept, now)


def change(
    tx: Tx, caller: Caller, webhook: Webhook, body: setup_shapes.WebhookChange, now: int
) -> shapes.Page:
    """An empty list of types changes nothing."""
    types = body.event_types or []
    events.require_known(types, "event_types")
    added = names.inbox_ids_of(tx, caller.reach, body.add_inbox_ids or [], "add_inbox_ids")
    removed = names.inbox_ids_of(tx, caller.reach, body.remove_inbox_ids or [], "remove_inbox_ids")
    pods_kept = [each for each in webhook.pod_ids if each not in (body.remove_pod_ids or ())]
    inboxes_kept = [each for each in (*webhook.inbox_ids, *added) if each not in removed]
    given = verbs.ListedWebhookChange(
        url=UNSET if body.url is None else body.url,
        event_types=events.ours(types) or UNSET,
        inbox_ids=list(dict.fromkeys(inboxes_kept)),
        pod_ids=list(dict.fromkeys([*pods_kept, *(body.add_pod_ids or ())])),
        enabled=UNSET if body.enabled is None else body.enabled,
    )
    verbs.change_webhook(tx, caller, webhook.owner, given, now)
    changed = webhook_list.get(tx, caller.account_id, webhook.owner)
    if types:
        changed = replace(changed, vocabulary=tuple(dict.fromkeys(types)))
        webhook_list.put(tx, changed)
    return show(tx, changed)


def delete_webhook(tx: Tx, caller: Caller, webhook_id: str, now: int) -> None:
    verbs.delete_listed_webhook(tx, caller, webhook_id, now)


def delete_webhook_within(tx: Tx, caller: Caller, within: Reach, webhook_id: str, now: int) -> None:
    verbs.delete_listed_webhook(tx, caller, get_of(tx, caller, webhook_id, within).owner, now)


def get_headers(tx: Tx, caller: Caller, webhook_id: str) -> shapes.Page:
    return {"header_names": sorted(get_of(tx, caller, webhook_id).headers)}


def get_headers_within(tx: Tx, caller: Caller, within: Reach, webhook_id: str) -> shapes.Page:
    return {"header_names": sorted(get_of(tx, caller, webhook_id, within).headers)}


def change_headers(
    tx: Tx, caller: Caller, webhook_id: str, body: setup_shapes.HeadersChange, now: int
) -> None:
    put_headers(tx, caller, get_of(tx, caller, webhook_id), body, now)


def change_headers_within(
    tx: Tx, caller: Caller, within: Reach, webhook_id: str, body: setup_shapes.HeadersChange, now: int
) -> None:
    put_headers(tx, caller, get_of(tx, caller, webhook_id, within), body, now)


def put_headers(tx: Tx, caller: Caller, webhook: Webhook, body: setup_shapes.HeadersChange, now: int) -> None:
    gone = {name.lower() for name in body.remove_headers or ()}
    kept = {name: value for name, value in webhook.headers.items() if name.lower() not in gone}
    given = verbs.ListedWebhookChange(headers={**kept, **(body.headers or {})})
    verbs.change_webhook(tx, caller, webhook.owner, given, now)
