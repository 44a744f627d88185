"""Operations on the list of webhooks: several endpoints, each for some inboxes, pods and kinds of events."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from postroom import ids, limits
from postroom.accounts import accounts, audit, pods
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.clock import SECOND
from postroom.config import Config
from postroom.errors import BadRequest, NotFound, no_such
from postroom.events import webhook_list, webhooks
from postroom.events.webhook_signature import is_standard, new_secret
from postroom.fields import PageQuery, PodId, Timestamp, show_item
from postroom.mailbox import inboxes
from postroom.mailbox.search import message_search
from postroom.operations import client_ids
from postroom.operations.client_ids import AlreadyThere, OwnId
from postroom.operations.webhooks import EventType, WebhookSecret
from postroom.storage.database import Tx

HIDDEN = "***"
EVENT = "event"
UNVERIFIED = "Its endpoint has not answered a test yet."
MOST_QUERY = 1000
LONGEST_SECONDS = 366 * 24 * 3600
MOST_PLACES = 100

Url = Annotated[str, Meta(description="Where to post events.", examples=["https://example.com/hooks/mail"])]
EventTypes = Annotated[
    list[EventType],
    Meta(
        max_length=limits.WEBHOOK_KINDS, description="Kinds of events to post; message.received by default."
    ),
]
InboxIds = Annotated[list[str], Meta(max_length=MOST_PLACES, description="Only of these inboxes.")]
PodIds = Annotated[
    list[PodId],
    Meta(max_length=MOST_PLACES, description="Only of these pods; without pods and inboxes, all."),
]
Headers = Annotated[
    dict[str, str], Meta(description="Header fields to add; shown as ***, and *** keeps the value.")
]


Search = Annotated[
    str, Meta(max_length=MOST_QUERY, description="Only events of messages that this search matches.")
]
TtlSeconds = Annotated[
    int, Meta(ge=1, le=LONGEST_SECONDS, description="It ends after so many seconds; null: never.")
]
GivenSecret = Annotated[
    str, Meta(max_length=200, description="Your Standard Webhooks secret: whsec_ and 24 to 64 bytes.")
]
Format = Annotated[
    Literal["event", "mcp"],
    Meta(description="mcp: as MCP Events say; disabled until its endpoint has answered a test."),
]


class NewListedWebhook(Struct, rename="camel", frozen=True):
    url: Url
    event_types: EventTypes | None = None
    inbox_ids: InboxIds = []
    pod_ids: PodIds = []
    headers: Headers = {}
    client_id: OwnId | None = None
    query: Search = ""
    ttl_seconds: TtlSeconds | None = None
    secret: GivenSecret | None = None
    format: Format = "event"


class ListedWebhookChange(Struct, rename="camel", frozen=True):
    url: Url | UnsetType = UNSET
    event_types: EventTypes | UnsetType = UNSET
    inbox_ids: InboxIds | UnsetType = UNSET
    pod_ids: PodIds | UnsetType = UNSET
    headers: Headers | UnsetType = UNSET
    enabled: Annotated[bool, Meta(description="true: it is enabled again.")] | UnsetType = UNSET
    query: Search | UnsetType = UNSET
    ttl_seconds: TtlSeconds | UnsetType | None = UNSET
    secret: GivenSecret | UnsetType = UNSET


class ListedWebhook(Struct, rename="camel", frozen=True):
    """`secret` is shown only when it was just created."""

    id: str
    client_id: str | None
    url: str
    event_types: list[str]
    inbox_ids: list[str]
    pod_ids: list[str]
    headers: dict[str, str]
    enabled: bool
    disabled_reason: str | None
    created_at: Timestamp
    query: str
    expires_at: Timestamp | None
    format: str
    secret: str | UnsetType = UNSET

    @classmethod
    def of(cls, webhook: webhooks.Webhook, secret: str | UnsetType = UNSET) -> "ListedWebhook":
        headers, form = dict.fromkeys(webhook.headers, HIDDEN), webhook.form or EVENT
        return show_item(cls, webhook, id=webhook.owner, headers=headers, format=form, secret=secret)


class ListedWebhookPage(Struct, frozen=True):
    data: list[ListedWebhook]
    total: int


def create_webhook(tx: Tx, caller: Caller, body: NewListedWebhook, config: Config, now: int) -> ListedWebhook:
    """Add a webhook to the list; its secret is shown once"""
    accounts.lock(tx, caller.account_id)
    client_ids.require_valid(body.client_id)
    known = None if body.client_id is None else find_by_client_id(tx, caller.scope, body.client_id)
    if known is not None:
        raise AlreadyThere(ListedWebhook.of(known))
    inbox_ids = require_inboxes(tx, caller, body.inbox_ids)
    is_mcp = body.format == webhooks.MCP
    if is_mcp and not config.mcp_events:
        raise BadRequest("format mcp needs POSTROOM_MCP_EVENTS=on at the server.", field="format")
    webhook = webhooks.Webhook(
        owner=ids.new(ids.WEBHOOK, now),
        account_id=caller.account_id,
        url=body.url,
        event_types=tuple(body.event_types or webhooks.DEFAULT_EVENT_TYPES),
        secret=require_secret(body.secret) or new_secret(),
        previous_secret=None,
        previous_until=None,
        enabled=not is_mcp,
        disabled_reason=UNVERIFIED if is_mcp else None,
        failing_since=None,
        created_at=now,
        client_id=body.client_id,
        inbox_ids=inbox_ids,
        pod_ids=pods_of(caller.scope, inbox_ids, require_pods(tx, caller, body.pod_ids)),
        headers=body.headers,
        is_listed=True,
        query=require_query(body.query),
        expires_at=end_of(body.ttl_seconds, now),
        form=webhooks.MCP if is_mcp else "",
        key_id=caller.key_id if is_mcp else None,
    )
    webhook_list.add(tx, webhook)
    audit.record_by(tx, caller, "webhook.created", webhook.owner, now, after=ListedWebhook.of(webhook))
    return ListedWebhook.of(webhook, webhook.secret)


def require_query(query: str) -> str:
    if "\0" in query:  # PostgreSQL cannot keep a NUL
        raise BadRequest("query must not contain a NUL character.", field="query")
    if query:
        message_search.parse(query, "query")
    return query


def end_of(ttl_seconds: int | None, now: int) -> int | None:
    return None if ttl_seconds is None else now + ttl_seconds * SECOND


def require_secret(secret: str | None) -> str | None:
    if secret is not None and not is_standard(secret):
        raise BadRequest(
            "secret must be whsec_ followed by the base64 of 24 to 64 random bytes.", field="secret"
        )
    return secret


def activate(tx: Tx, place: Scope, webhook_id: str) -> None:
    """Activate a webhook whose endpoint has agreed to get events."""
    webhook = get_of(tx, place, webhook_id)
    webhook_list.put(tx, replace(webhook, enabled=True, disabled_reason=None, failing_since=None))


def require_inboxes(tx: Tx, caller: Caller, asked: list[str]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(inboxes.get(tx, caller.scope, inbox_id).id for inbox_id in asked))
    except NotFound:
        raise BadRequest(
            "inboxIds names an inbox that does not exist. GET /v1/inboxes lists them.", field="inboxIds"
        ) from None


def require_pods(tx: Tx, caller: Caller, asked: list[str]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(pods.get(tx, caller.scope, pod_id).id for pod_id in asked))
    except NotFound:
        raise BadRequest(
            "podIds names a pod that does not exist. GET /v1/pods lists them.", field="podIds"
        ) from None


def pods_of(place: Scope, inbox_ids: Sequence[str], asked: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pods that a webhook is limited to; none if it names inboxes."""
    if place.is_account:
        return asked
    return () if inbox_ids or place.pod_id is None else (place.pod_id,)


def belongs(tx: Tx, webhook: webhooks.Webhook, place: Scope) -> bool:
    """Return whether the webhook gets events of this inbox or pod only."""
    if place.is_account:
        return True
    if place.inbox_id is not None:
        return webhook.inbox_ids == (place.inbox_id,) and not webhook.pod_ids
    inside = [inboxes.find(tx, inbox_id) for inbox_id in webhook.inbox_ids]
    is_inside = all(inbox is not None and inbox.pod_id == place.pod_id for inbox in inside)
    return is_inside and webhook.pod_ids == (() if inside else (place.pod_id,))


def get_of(tx: Tx, place: Scope, webhook_id: str) -> webhooks.Webhook:
    webhook = webhook_list.get(tx, place.account_id, webhook_id)
    if not belongs(tx, webhook, place):
        raise no_such("webhook")
    return webhook


def find_by_client_id(tx: Tx, place: Scope, client_id: str) -> webhooks.Webhook | None:
    found = webhook_list.list_by_client_id(tx, place.account_id, client_id)
    return next((webhook for webhook in found if belongs(tx, webhook, place)), None)


def list_webhooks(tx: Tx, caller: Caller, query: PageQuery) -> ListedWebhookPage:
    """List the webhooks, oldest first"""
    there = webhook_list.list_of_account(tx, caller.account_id)
    found = [webhook for webhook in there if belongs(tx, webhook, caller.scope)]
    page = found[query.offset : query.offset + query.limit]
    return ListedWebhookPage([ListedWebhook.of(webhook) for webhook in page], len(found))


def get_listed_webhook(tx: Tx, caller: Caller, webhook_id: str) -> ListedWebhook:
    """Get a webhook of the list"""
    return ListedWebhook.of(get_of(tx, caller.scope, webhook_id))


def change_webhook(
    tx: Tx, caller: Caller, webhook_id: str, body: ListedWebhookChange, now: int
) -> ListedWebhook:
    """Change a webhook of the list; what is given replaces what was there"""
    accounts.lock(tx, caller.account_id)
    webhook = get_of(tx, caller.scope, webhook_id)
    changed = webhook
    if body.url is not UNSET:
        changed = replace(changed, url=body.url)
    if body.event_types is not UNSET:
        changed = replace(changed, event_types=tuple(body.event_types) or webhooks.DEFAULT_EVENT_TYPES)
    if body.inbox_ids is not UNSET:
        changed = replace(changed, inbox_ids=require_inboxes(tx, caller, body.inbox_ids))
    if body.pod_ids is not UNSET:
        changed = replace(changed, pod_ids=require_pods(tx, caller, body.pod_ids))
    changed = replace(changed, pod_ids=pods_of(caller.scope, changed.inbox_ids, changed.pod_ids))
    if body.headers is not UNSET:
        changed = replace(changed, headers=unhidden(body.headers, webhook.headers))
    if body.enabled is not UNSET:
        reason = None if body.enabled else "It was disabled by hand."
        if body.enabled and webhook.disabled_reason == UNVERIFIED:
            raise BadRequest("Its endpoint has not agreed yet: test the webhook.", field="enabled")
        changed = replace(changed, enabled=body.enabled, disabled_reason=reason, failing_since=None)
    if body.query is not UNSET:
        changed = replace(changed, query=require_query(body.query))
    if body.ttl_seconds is not UNSET:
        changed = replace(changed, expires_at=end_of(body.ttl_seconds, now))
    if body.secret is not UNSET:
        webhooks.set_secret(tx, webhook, require_secret(body.secret) or webhook.secret, now)
    if webhook.form == webhooks.MCP and changed.url != webhook.url:
        changed = replace(changed, enabled=False, disabled_reason=UNVERIFIED)
    webhook_list.put(tx, changed)
    before, after = ListedWebhook.of(webhook), ListedWebhook.of(changed)
    audit.record_by(tx, caller, "webhook.changed", webhook_id, now, before=before, after=after)
    return after


def unhidden(given: dict[str, str], there: Mapping[str, str]) -> dict[str, str]:
    """Return the headers to store: a value shown as *** that comes back as *** stays unchanged."""
    return {name: there.get(name, value) if value == HIDDEN else value for name, value in given.items()}


def delete_listed_webhook(tx: Tx, caller: Caller, webhook_id: str, now: int) -> None:
    """Remove a webhook of the list"""
    before = ListedWebhook.of(get_of(tx, caller.scope, webhook_id))
    webhooks.remove(tx, webhook_id)
    audit.record_by(tx, caller, "webhook.removed", webhook_id, now, before=before)


def rotate_listed_webhook_secret(tx: Tx, caller: Caller, webhook_id: str, now: int) -> WebhookSecret:
    """Create a new secret for a webhook of the list; the old one stays valid for 24 hours"""
    get_of(tx, caller.scope, webhook_id)
    audit.record_by(tx, caller, "webhook.secret_rotated", webhook_id, now)
    return WebhookSecret(webhooks.rotate_secret(tx, webhook_id, now).secret)
