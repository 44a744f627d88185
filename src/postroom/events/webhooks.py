"""Webhooks: where an account's events are posted, and the secret that signs them."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from postroom import ids
from postroom.clock import DAY
from postroom.errors import NotFound
from postroom.events import kinds
from postroom.events.event_log import Event, EventRow
from postroom.events.kinds import MESSAGE_RECEIVED
from postroom.events.webhook_signature import new_secret
from postroom.queue import deliveries
from postroom.queue.deliveries import NewDelivery
from postroom.storage.database import Row, Tx, insert_item, item_from_row

PREVIOUS_SECRET_LIFETIME = DAY
GIVE_UP_AFTER = 5 * DAY
DEFAULT_EVENT_TYPES = (MESSAGE_RECEIVED,)
MCP = "mcp"


class Webhook(Struct, frozen=True):
    """`owner` is the account, the inbox whose own webhook this is, or the webhook's id in the list."""

    owner: str
    account_id: str
    url: str
    event_types: tuple[str, ...]
    secret: str
    previous_secret: str | None
    previous_until: int | None
    enabled: bool
    disabled_reason: str | None
    failing_since: int | None
    created_at: int
    client_id: str | None = None
    inbox_ids: tuple[str, ...] = ()  # without inboxes and pods: all
    pod_ids: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    is_listed: bool = False
    vocabulary: tuple[str, ...] = ()  # kinds of events of the /v0 interface, sent instead of ours
    query: str = ""  # a search that the message of an event must match
    expires_at: int | None = None
    form: str = ""  # MCP: the form of MCP Events, and active once its endpoint has agreed
    key_id: str | None = None  # it ends with this key

    @classmethod
    def from_row(cls, row: Row) -> "Webhook":
        return item_from_row(
            cls,
            row,
            event_types=tuple(row["event_types"].split()),
            enabled=bool(row["enabled"]),
            inbox_ids=tuple(row["inbox_ids"].split()),
            pod_ids=tuple(row["pod_ids"].split()),
            headers=msgspec.json.decode(row["headers"], type=dict[str, str]),
            is_listed=bool(row["is_listed"]),
            vocabulary=tuple(row["vocabulary"].split()),
        )

    def wants(self, event: EventRow) -> bool:
        is_inside = event.inbox_id in self.inbox_ids or event.pod_id in self.pod_ids
        is_meant = is_inside or not (self.inbox_ids or self.pod_ids)
        return self.enabled and event.kind in self.event_types and is_meant

    def secrets_at(self, now: int) -> list[str]:
        """Return the current secret, then the previous one that receivers may still have."""
        is_kept = self.previous_secret is not None and self.previous_until is not None
        if is_kept and self.previous_until is not None and now < self.previous_until:
            return [self.secret, self.previous_secret or ""]
        return [self.secret]


def find(tx: Tx, owner: str) -> Webhook | None:
    row = tx.one("select * from webhooks where owner = :owner", owner=owner)
    return None if row is None else Webhook.from_row(row)


def list_for_inbox(tx: Tx, inbox_id: str, account_id: str) -> list[Webhook]:
    """List the inbox's own webhook, else the account's; plus all webhooks of the list."""
    rows = tx.all(
        "select * from webhooks where owner in (:inbox_id, :account_id)"
        " union all select * from webhooks where account_id = :account_id and is_listed = 1",
        inbox_id=inbox_id,
        account_id=account_id,
    )
    found = {row["owner"]: Webhook.from_row(row) for row in rows}
    own = found.pop(inbox_id, None)
    of_account = found.pop(account_id, None)
    first = own or of_account
    return [*([] if first is None else [first]), *found.values()]


def list_of_account(tx: Tx, account_id: str, limit: int) -> list[Webhook]:
    """List the account's own webhook first, then those of inboxes."""
    rows = tx.all(
        "select * from webhooks where account_id = :id order by created_at, owner limit :limit",
        id=account_id,
        limit=limit,
    )
    return sorted(map(Webhook.from_row, rows), key=lambda webhook: webhook.owner != account_id)


def get(tx: Tx, owner: str) -> Webhook:
    webhook = find(tx, owner)
    if webhook is None:
        raise NotFound("No webhook is set. PUT /v1/webhook sets one.")
    return webhook


def put(
    tx: Tx,
    owner: str,
    account_id: str,
    url: str,
    event_types: tuple[str, ...] | None,
    secret: str | None,
    now: int,
) -> tuple[Webhook, bool]:
    """Sets and enables it. Fields not given stay. True if a secret was just made."""
    kinds.require_known(event_types or (), "eventTypes")
    known = find(tx, owner)
    kept = known.secret if known else None
    rotated = known if secret is None else None  # only a given secret ends the validity of the previous one
    webhook = Webhook(
        owner=owner,
        account_id=account_id,
        url=url,
        event_types=event_types or (known.event_types if known else DEFAULT_EVENT_TYPES),
        secret=secret or kept or new_secret(),
        previous_secret=rotated.previous_secret if rotated else None,
        previous_until=rotated.previous_until if rotated else None,
        enabled=True,
        disabled_reason=None,
        failing_since=None,
        created_at=known.created_at if known else now,
    )
    remove(tx, owner)
    add(tx, webhook)
    return webhook, secret is None and kept is None


def add(tx: Tx, webhook: Webhook) -> None:
    """Lists are stored as words separated by blanks."""
    insert_item(
        tx,
        "webhooks",
        webhook,
        enabled=int(webhook.enabled),
        is_listed=int(webhook.is_listed),
        **changeable(webhook),
    )


def changeable(webhook: Webhook) -> dict[str, object]:
    """Return the columns that its owner may change."""
    return {
        "url": webhook.url,
        "event_types": " ".join(webhook.event_types),
        "client_id": webhook.client_id,
        "inbox_ids": " ".join(webhook.inbox_ids),
        "pod_ids": " ".join(webhook.pod_ids),
        "headers": msgspec.json.encode(dict(webhook.headers)).decode(),
        "vocabulary": " ".join(webhook.vocabulary),
        "query": webhook.query,
        "expires_at": webhook.expires_at,
    }


def remove(tx: Tx, owner: str) -> bool:
    return tx.run("delete from webhooks where owner = :owner", owner=owner) == 1


def set_secret(tx: Tx, webhook: Webhook, secret: str, now: int) -> None:
    """Set the secret. The old one stays valid for a day."""
    if secret == webhook.secret:
        return
    tx.run(
        "update webhooks set secret = :secret, previous_secret = :previous, previous_until = :until"
        " where owner = :owner",
        secret=secret,
        previous=webhook.secret,
        until=now + PREVIOUS_SECRET_LIFETIME,
        owner=webhook.owner,
    )


def rotate_secret(tx: Tx, owner: str, now: int) -> Webhook:
    """Make a new secret. The old one stays valid for a day."""
    webhook = get(tx, owner)
    renewed = replace(
        webhook,
        secret=new_secret(),
        previous_secret=webhook.secret,
        previous_until=now + PREVIOUS_SECRET_LIFETIME,
    )
    tx.run(
        "update webhooks set secret = :secret, previous_secret = :previous, previous_until = :until"
        " where owner = :owner",
        secret=renewed.secret,
        previous=renewed.previous_secret,
        until=renewed.previous_until,
        owner=owner,
    )
    return renewed


def enqueue_all(tx: Tx, recorded: Sequence[EventRow]) -> set[str]:
    """Adds a delivery for every webhook that wants an event. Returns the ids of events that are wanted."""
    owners = {event.inbox_id: event.account_id for event in recorded}
    found = {inbox_id: list_for_inbox(tx, inbox_id, account_id) for inbox_id, account_id in owners.items()}
    wanted = [
        _posted(event, webhook.owner, webhook.url, event.created_at)
        for event in recorded
        for webhook in found[event.inbox_id]
        if webhook.wants(event)
    ]
    deliveries.add_all(tx, wanted)
    return {new.event_id for new in wanted if new.event_id is not None}


def _posted(event: Event | EventRow, owner: str, url: str, at: int, is_replay: int = 0) -> NewDelivery:
    return NewDelivery(
        id=ids.new(ids.WEBHOOK_DELIVERY, at),
        account_id=event.account_id,
        inbox_id=event.inbox_id,
        kind=deliveries.WEBHOOK,
        message_id=event.message_id,
        event_id=event.id,
        target=url,
        lane=f"{event.account_id} {urlsplit(url).netloc}",
        webhook_owner=owner,
        is_replay=is_replay,
        due_at=at,
        created_at=at,
    )


def replay(tx: Tx, event: Event, webhook: Webhook, now: int) -> str:
    """Posts an event again, to a chosen webhook. Returns the new delivery's id."""
    new = _posted(event, webhook.owner, webhook.url, now, is_replay=1)
    deliveries.add_all(tx, [new])
    return new.id


def is_posted(tx: Tx, event: Event, owner: str) -> bool:
    """Return whether an event is, or was, on its way to a webhook."""
    row = tx.one(
        "select 1 as found from deliveries where message_id = :message_id and kind = 'webhook'"
        " and event_id = :event_id and webhook_owner = :owner limit 1",
        message_id=event.message_id,
        event_id=event.id,
        owner=owner,
    )
    return row is not None


def record_success(tx: Tx, webhook: Webhook) -> None:
    tx.run(
        "update webhooks set failing_since = null where owner = :owner and failing_since is not null",
        owner=webhook.owner,
    )


def record_failure(tx: Tx, webhook: Webhook, is_gone: bool, now: int) -> None:
    """Disable the webhook after a 410, or five days without a success. The reason is shown.

    `webhook` is from before the attempt; results of other attempts since then count.
    """
    current = find(tx, webhook.owner)
    if current is None or current.url != webhook.url:
        return
    failing_since = current.failing_since if current.failing_since is not None else now
    reason = _reason_to_disable(failing_since, is_gone, now)
    tx.run(
        "update webhooks set failing_since = :since, enabled = :enabled, disabled_reason = :reason"
        " where owner = :owner",
        since=failing_since,
        enabled=int(current.enabled and reason is None),
        reason=reason or current.disabled_reason,
        owner=webhook.owner,
    )


def _reason_to_disable(failing_since: int, is_gone: bool, now: int) -> str | None:
    if is_gone:
        return "The endpoint answered 410 Gone."
    if now - failing_since >= GIVE_UP_AFTER:
        return "The endpoint has failed for five days."
    return None
