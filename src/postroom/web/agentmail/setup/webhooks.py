"""Webhooks of /v0: those of the list, in its format and with the signature headers of Svix."""

from functools import partial

from msgspec import UNSET
from msgspec.structs import replace

from postroom.accounts import accounts
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.config import Config
from postroom.events import webhook_list
from postroom.events.webhooks import Webhook
from postroom.fields import Cursor
from postroom.mailbox import inboxes
from postroom.operations import webhook_list as verbs
from postroom.resources import Tx
from postroom.web.agentmail import events, names, paging, shapes
from postroom.web.agentmail.setup import setup_shapes


def show(tx: Tx, webhook: Webhook) -> shapes.Page:
    """Includes the secret, as its clients expect on every read: only managing keys come here."""
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


def create_webhook(
    tx: Tx, caller: Caller, place: Scope, body: setup_shapes.NewWebhook, config: Config, now: int
) -> shapes.Page:
    """Create a webhook. The same client_id again returns the first one."""
    accounts.lock(tx, caller.account_id)
    known = verbs.find_by_client_id(tx, place, body.client_id) if body.client_id else None
    if known is not None:
        return show(tx, known)
    events.require_known(body.event_types, "event_types")
    inbox_ids = names.inbox_ids_of(tx, place, body.inbox_ids or [], "inbox_ids")
    inbox_ids = inbox_ids if place.inbox_id is None else [place.inbox_id]
    new = verbs.NewListedWebhook(
        url=body.url,
        event_types=events.ours(body.event_types) or None,
        inbox_ids=inbox_ids,
        pod_ids=list(verbs.pods_of(place, inbox_ids, tuple(body.pod_ids or ()))),
        headers=body.headers or {},
        client_id=body.client_id,
    )
    made = verbs.create_webhook(tx, caller, new, config, now)
    return put_words(tx, caller, made.id, body.event_types)


def put_words(tx: Tx, caller: Caller, webhook_id: str, types: list[str]) -> shapes.Page:
    webhook = webhook_list.get(tx, caller.account_id, webhook_id)
    if types:
        webhook = replace(webhook, vocabulary=tuple(dict.fromkeys(types)))
        webhook_list.put(tx, webhook)
    return show(tx, webhook)


def list_webhooks(tx: Tx, place: Scope, query: shapes.PageQuery) -> shapes.Page:
    found = webhook_list.list_of_account(tx, place.account_id)
    there = [webhook for webhook in found if verbs.belongs(tx, webhook, place)]
    return paging.page_of(
        "webhooks", paging.part_of(there, query, place_of), query, partial(show, tx), place_of
    )


def place_of(webhook: Webhook) -> Cursor:
    return Cursor(webhook.created_at, webhook.owner)


def get_webhook(tx: Tx, place: Scope, webhook_id: str) -> shapes.Page:
    return show(tx, verbs.get_of(tx, place, webhook_id))


def change_webhook(
    tx: Tx, caller: Caller, place: Scope, webhook_id: str, body: setup_shapes.WebhookChange, now: int
) -> shapes.Page:
    """Change a webhook. An empty list of types changes nothing.

    Below an inbox or a pod, a webhook stays there.
    """
    webhook = verbs.get_of(tx, place, webhook_id)
    types = body.event_types or []
    events.require_known(types, "event_types")
    inbox_ids = changed_inboxes(tx, place, webhook, body)
    given = verbs.ListedWebhookChange(
        url=UNSET if body.url is None else body.url,
        event_types=events.ours(types) or UNSET,
        inbox_ids=inbox_ids,
        pod_ids=list(verbs.pods_of(place, inbox_ids, tuple(changed_pods(webhook, body)))),
        enabled=UNSET if body.enabled is None else body.enabled,
    )
    verbs.change_webhook(tx, caller, webhook.owner, given, now)
    return put_words(tx, caller, webhook.owner, types)


def changed_inboxes(tx: Tx, place: Scope, webhook: Webhook, body: setup_shapes.WebhookChange) -> list[str]:
    if place.inbox_id is not None:
        return [place.inbox_id]
    added = names.inbox_ids_of(tx, place, body.add_inbox_ids or [], "add_inbox_ids")
    removed = names.inbox_ids_of(tx, place, body.remove_inbox_ids or [], "remove_inbox_ids")
    return list(dict.fromkeys(each for each in (*webhook.inbox_ids, *added) if each not in removed))


def changed_pods(webhook: Webhook, body: setup_shapes.WebhookChange) -> list[str]:
    kept = [each for each in webhook.pod_ids if each not in (body.remove_pod_ids or ())]
    return list(dict.fromkeys([*kept, *(body.add_pod_ids or ())]))


def delete_webhook(tx: Tx, caller: Caller, place: Scope, webhook_id: str, now: int) -> None:
    verbs.delete_listed_webhook(tx, caller, verbs.get_of(tx, place, webhook_id).owner, now)


def get_headers(tx: Tx, place: Scope, webhook_id: str) -> shapes.Page:
    return {"header_names": sorted(verbs.get_of(tx, place, webhook_id).headers)}


def change_headers(
    tx: Tx, caller: Caller, place: Scope, webhook_id: str, body: setup_shapes.HeadersChange, now: int
) -> None:
    webhook = verbs.get_of(tx, place, webhook_id)
    gone = {name.lower() for name in body.remove_headers or ()}
    kept = {name: value for name, value in webhook.headers.items() if name.lower() not in gone}
    given = verbs.ListedWebhookChange(headers={**kept, **(body.headers or {})})
    verbs.change_webhook(tx, caller, webhook.owner, given, now)
