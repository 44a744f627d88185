"""The list of webhooks of an account, in addition to its first one and those of inboxes."""

import re
from collections.abc import Mapping

from postroom import ids, limits
from postroom.errors import BadRequest, WebhookLimitReached, no_such
from postroom.events import kinds, webhooks
from postroom.events.webhooks import Webhook
from postroom.storage.database import Tx

VALUE_CHARACTERS = 1000
NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
VALUE = re.compile(r"[\x20-\x7e]*")
# Headers that we set ourselves, and those of the connection.
OURS = frozenset(
    """
    content-type content-length content-encoding transfer-encoding host connection
    user-agent x-timestamp x-signature x-event-id webhook-id webhook-timestamp
    webhook-signature x-mcp-subscription-id traceparent svix-id svix-timestamp svix-signature
    expect upgrade te trailer keep-alive
    """.split()
)


def require_headers(headers: Mapping[str, str]) -> None:
    if len(headers) > limits.WEBHOOK_HEADERS:
        raise BadRequest(f"headers has at most {limits.WEBHOOK_HEADERS} entries.", field="headers")
    for name, value in headers.items():
        if name.lower() in OURS:
            raise BadRequest(
                f"{name} is set by the server and cannot be replaced. Leave it out.", field="headers"
            )
        if not NAME.fullmatch(name) or not VALUE.fullmatch(value) or len(value) > VALUE_CHARACTERS:
            raise BadRequest(
                f"headers has a name or a value that HTTP does not allow: {name[:50]!r}.", field="headers"
            )


def add(tx: Tx, webhook: Webhook) -> None:
    """Add a webhook. The caller has locked the account, so that two added at once are both counted."""
    row = tx.one(
        "select count(*) as webhooks from webhooks where account_id = :id and is_listed = 1",
        id=webhook.account_id,
    )
    if row is not None and row["webhooks"] >= limits.WEBHOOKS:
        raise WebhookLimitReached(f"An account has at most {limits.WEBHOOKS} webhooks. Delete one first.")
    kinds.require_known(webhook.event_types, "eventTypes")
    require_headers(webhook.headers)
    webhooks.add(tx, webhook)


def put(tx: Tx, webhook: Webhook) -> None:
    kinds.require_known(webhook.event_types, "eventTypes")
    require_headers(webhook.headers)
    tx.run(
        "update webhooks set url = :url, event_types = :event_types, client_id = :client_id,"
        " inbox_ids = :inbox_ids, pod_ids = :pod_ids, headers = :headers, vocabulary = :vocabulary,"
        " query = :query, expires_at = :expires_at,"
        " enabled = :enabled, disabled_reason = :disabled_reason, failing_since = :failing_since"
        " where owner = :owner",
        owner=webhook.owner,
        enabled=int(webhook.enabled),
        disabled_reason=webhook.disabled_reason,
        failing_since=webhook.failing_since,
        **webhooks.changeable(webhook),
    )


def get(tx: Tx, account_id: str, webhook_id: str) -> Webhook:
    webhook = webhooks.find(tx, webhook_id) if ids.is_id(ids.WEBHOOK, webhook_id) else None
    if webhook is None or webhook.account_id != account_id:
        raise no_such("webhook")
    return webhook


def list_by_client_id(tx: Tx, account_id: str, client_id: str) -> list[Webhook]:
    """Return the webhooks with this client id: pods may use the same one."""
    rows = tx.all(
        "select * from webhooks where account_id = :account_id and client_id = :client_id and is_listed = 1"
        " order by created_at, owner",
        account_id=account_id,
        client_id=client_id,
    )
    return [Webhook.from_row(row) for row in rows]


def list_of_account(tx: Tx, account_id: str) -> list[Webhook]:
    rows = tx.all(
        "select * from webhooks where account_id = :id and is_listed = 1 order by created_at, owner",
        id=account_id,
    )
    return [Webhook.from_row(row) for row in rows]
