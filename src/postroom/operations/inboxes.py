"""Operations on inboxes."""

from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from postroom.accounts import audit, names, pods
from postroom.accounts.keys import Caller
from postroom.accounts.rules import approval, disclosure, junk, limits
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.disclosure import Disclosure
from postroom.accounts.rules.junk import JunkRules
from postroom.accounts.rules.limits import AccountLimits, Budget
from postroom.accounts.rules.origin_guard import GuardStep
from postroom.config import Config
from postroom.errors import BadRequest
from postroom.events import webhooks
from postroom.external_mailboxes import address_uses, connections
from postroom.fields import Limit, Offset, OwnWebhook, PodFilter, PodId, RetentionDays, Timestamp, show_item
from postroom.limits import INBOX_METADATA_ENTRIES, NAME_CHARACTERS, PAGE
from postroom.mailbox import inboxes, keyset_listing, legal_holds
from postroom.operations import client_ids
from postroom.operations.addresses import CatchAll, Subdomains, may_take_reserved, with_others
from postroom.operations.client_ids import AlreadyThere, OwnId
from postroom.operations.legal_holds import hold_inbox
from postroom.storage.database import Tx
from postroom_mail.screening import canary

METADATA_CHARACTERS = 500
METADATA_BYTES = 64 * 1024  # of all keys together: each list of inboxes shows them

# Patterns are only described here: the nouns check them, and say in words what is wrong.
DisplayName = Annotated[
    str,
    Meta(
        max_length=NAME_CHARACTERS,
        description="The name that From shows.",
        extra_json_schema={"pattern": names.PATTERN},
    ),
]
MailboxName = Annotated[
    str,
    Meta(
        description="The part of the address before the @.",
        examples=["invoices", "support-eu"],
        extra_json_schema={"pattern": inboxes.MAILBOX_NAME},
    ),
]
Metadata = Annotated[
    dict[str, str | int | float | bool | None],
    Meta(
        max_length=INBOX_METADATA_ENTRIES,
        description="Stored and shown, never sent. Keys that are not given stay, null removes one.",
    ),
]

WithCanary = Annotated[
    bool,
    Meta(description="Shows the agent a secret token; a send that contains it is held (canary)."),
]

WithLegalHold = Annotated[
    bool,
    Meta(description="true: nothing in it is deleted, erased or expired until this is false again."),
]

AllowReserved = Annotated[
    bool,
    Meta(description="Allow names such as postmaster or admin: with a key of the account, on your domain."),
]


class NewInbox(Struct, rename="camel", frozen=True):
    mailbox_name: MailboxName
    display_name: DisplayName | None = None
    domain: Annotated[str, Meta(description="A verified domain of the account.")] | None = None
    pod_id: PodId | None = None
    webhook_url: OwnWebhook | None = None
    approval: Approval | UnsetType | None = UNSET
    limits: Budget | UnsetType | None = UNSET
    metadata: Metadata | UnsetType | None = UNSET
    retention_days: RetentionDays | UnsetType | None = UNSET
    canary: WithCanary | UnsetType = UNSET
    junk: JunkRules | UnsetType | None = UNSET
    origin_guard: GuardStep | UnsetType | None = UNSET
    disclosure: Disclosure | UnsetType | None = UNSET
    allow_reserved: AllowReserved = False
    client_id: OwnId | None = None
    catch_all: CatchAll | UnsetType = UNSET
    subdomains: Subdomains | UnsetType = UNSET


class InboxChange(Struct, rename="camel", frozen=True):
    display_name: DisplayName | UnsetType | None = UNSET
    webhook_url: OwnWebhook | UnsetType | None = UNSET
    approval: Approval | UnsetType | None = UNSET
    limits: Budget | UnsetType | None = UNSET
    metadata: Metadata | UnsetType | None = UNSET
    retention_days: RetentionDays | UnsetType | None = UNSET
    canary: WithCanary | UnsetType = UNSET
    catch_all: CatchAll | UnsetType = UNSET
    subdomains: Subdomains | UnsetType = UNSET
    junk: JunkRules | UnsetType | None = UNSET
    origin_guard: GuardStep | UnsetType | None = UNSET
    disclosure: Disclosure | UnsetType | None = UNSET
    legal_hold: WithLegalHold | UnsetType = UNSET


class InboxQuery(Struct, frozen=True):
    pod_id: PodFilter | None = field(default=None, name="podId")
    limit: Limit = PAGE
    offset: Offset = 0


class Inbox(Struct, rename="camel", frozen=True):
    """`webhookSecret` is shown once: in the answer that set the inbox's own webhook."""

    id: str
    address: str
    display_name: str | None
    created_at: Timestamp
    webhook_url: str | None
    pod_id: str
    approval: Approval | None
    limits: Budget | None
    metadata: dict[str, str | int | float | bool]
    retention_days: int | None
    canary: bool
    external_address: str | None
    catch_all: bool
    subdomains: bool
    legal_hold: bool
    client_id: str | None = None
    junk: JunkRules | None = None
    origin_guard: str | None = None
    disclosure: Disclosure | None = None
    webhook_secret: str | UnsetType = UNSET

    @classmethod
    def of(cls, inbox: inboxes.Inbox, webhook_secret: str | UnsetType = UNSET) -> "Inbox":
        return show_item(
            cls,
            inbox,
            approval=approval.decode(inbox.approval),
            limits=None if inbox.limits is None else limits.decode(inbox.limits),
            metadata=inboxes.decode_metadata(inbox.metadata),
            canary=inbox.canary is not None,
            catch_all=bool(inbox.catch_all),
            subdomains=bool(inbox.subdomains),
            legal_hold=bool(inbox.legal_hold),
            junk=junk.decode(inbox.junk),
            disclosure=disclosure.decode(inbox.disclosure),
            webhook_secret=webhook_secret,
        )


class InboxPage(Struct, rename="camel", frozen=True):
    data: list[Inbox]
    total: int


def create_inbox(tx: Tx, caller: Caller, body: NewInbox, config: Config, now: int) -> Inbox:
    """Create an inbox"""
    pod_id = pods.choose(tx, caller.scope, body.pod_id)
    require_new(tx, pod_id, body.client_id)
    allowed = limits.in_force(config, caller.account_limits)
    added = inboxes.add(
        tx,
        caller.account_id,
        body.mailbox_name,
        body.domain,
        body.display_name,
        config.domain,
        now,
        pod_id,
        caller.scope,
        allowed.inboxes_per_day,
        allow_reserved=body.allow_reserved and may_take_reserved(tx, caller, body.domain, config),
    )
    address_uses.require_no_person(tx, [added.address], "mailboxName", caller.account_id)
    inbox = replace(bind(added, body, allowed), client_id=body.client_id)
    inboxes.put(tx, inbox)
    inbox = with_others(tx, caller, inbox, body.catch_all, body.subdomains, config)
    if body.client_id is not None:
        inboxes.set_client_id(tx, inbox.id, body.client_id)
    if body.approval is not UNSET:
        address_uses.record_reviewers(tx, inbox.account_id, inbox.id, inbox.approval)
    secret: str | UnsetType = UNSET
    if body.webhook_url is not None:
        inbox, secret = change_webhook(tx, inbox, body.webhook_url, now)
    audit.record_by(tx, caller, "inbox.created", inbox.id, now, within=inbox.scope, after=Inbox.of(inbox))
    return Inbox.of(inbox, secret)


def require_new(tx: Tx, pod_id: str, client_id: str | None) -> None:
    """Raise AlreadyThere if the pod has an inbox with this clientId."""
    client_ids.require_valid(client_id)
    if client_id is None:
        return
    pods.lock(tx, pod_id)
    known = keyset_listing.find_inbox_by_client_id(tx, pod_id, client_id)
    if known is not None:
        raise AlreadyThere(Inbox.of(known))


def list_inboxes(tx: Tx, caller: Caller, query: InboxQuery) -> InboxPage:
    """List inboxes, newest first"""
    scope = inboxes.narrow(tx, caller.scope, None, query.pod_id)
    if scope is None:
        return InboxPage([], 0)
    found, total = inboxes.list_within(tx, scope, query.limit, query.offset)
    return InboxPage([Inbox.of(inbox) for inbox in found], total)


def get_inbox(tx: Tx, caller: Caller, inbox_id: str) -> Inbox:
    """Get an inbox"""
    return Inbox.of(inboxes.get(tx, caller.scope, inbox_id))


def change_inbox(
    tx: Tx, caller: Caller, inbox: inboxes.Inbox, body: InboxChange, config: Config, now: int
) -> Inbox:
    """Change an inbox; null clears a field"""
    before, changed = inbox, inbox
    if body.legal_hold is not UNSET:
        hold_inbox(tx, caller, inbox.id, body.legal_hold, now)
        changed = replace(changed, legal_hold=int(body.legal_hold))
    if body.display_name is not UNSET:
        changed = replace(changed, display_name=body.display_name)
    changed = bind(changed, body, limits.in_force(config, caller.account_limits))
    inboxes.put(tx, changed)
    changed = with_others(tx, caller, changed, body.catch_all, body.subdomains, config)
    if body.approval is not UNSET:
        address_uses.record_reviewers(tx, changed.account_id, changed.id, changed.approval)
    secret: str | UnsetType = UNSET
    if body.webhook_url is not UNSET:
        changed, secret = change_webhook(tx, changed, body.webhook_url, now)
    was, shown = Inbox.of(before), Inbox.of(changed)
    audit.record_by(
        tx, caller, "inbox.changed", changed.id, now, within=changed.scope, before=was, after=shown
    )
    return Inbox.of(changed, secret)


def bind(inbox: inboxes.Inbox, body: InboxChange | NewInbox, allowed: AccountLimits) -> inboxes.Inbox:
    if body.approval is not UNSET:
        inbox = replace(inbox, approval=approval.check_and_encode(body.approval))
    if body.limits is not UNSET:
        inbox = replace(inbox, limits=limits.check_and_encode(body.limits, allowed))
    if body.metadata is not UNSET:
        inbox = replace(inbox, metadata=change_metadata(inbox.metadata, body.metadata))
    if body.retention_days is not UNSET:
        inbox = replace(inbox, retention_days=body.retention_days)
    if body.canary is not UNSET:
        inbox = replace(inbox, canary=(inbox.canary or canary.new_token()) if body.canary else None)
    if body.junk is not UNSET:
        inbox = replace(inbox, junk=junk.check_and_encode(body.junk))
    if body.origin_guard is not UNSET:
        inbox = replace(inbox, origin_guard=body.origin_guard)
    if body.disclosure is not UNSET:
        inbox = replace(inbox, disclosure=disclosure.check_and_encode(body.disclosure))
    return inbox


def change_metadata(
    stored: str | None, asked: Mapping[str, inboxes.MetadataValue | None] | None
) -> str | None:
    """Return the metadata to store. Omitted keys stay, None removes one; None for all clears everything."""
    if asked is None:
        return None
    changed = {
        name: value
        for name, value in {**inboxes.decode_metadata(stored), **asked}.items()
        if value is not None
    }
    if (
        len(changed) > INBOX_METADATA_ENTRIES
        or not all(map(_is_short, changed))
        or not _are_short(changed.values())
    ):
        raise BadRequest(
            f"metadata has at most {INBOX_METADATA_ENTRIES} keys, and strings of at most"
            f" {METADATA_CHARACTERS} characters.",
            field="metadata",
        )
    encoded = msgspec.json.encode(changed)
    if len(encoded) > METADATA_BYTES:
        raise BadRequest(f"metadata has at most {METADATA_BYTES} bytes as JSON.", field="metadata")
    return encoded.decode() if changed else None


def _are_short(values: Iterable[inboxes.MetadataValue | None]) -> bool:
    return all(_is_short(value) for value in values if isinstance(value, str))


def _is_short(text: str) -> bool:
    return len(text) <= METADATA_CHARACTERS and "\0" not in text  # PostgreSQL cannot keep a NUL


def change_webhook(
    tx: Tx, inbox: inboxes.Inbox, url: str | None, now: int
) -> tuple[inboxes.Inbox, str | UnsetType]:
    """Change the webhook of an inbox; return the inbox, and the secret if one was created."""
    changed = inboxes.set_webhook_url(tx, inbox, url)
    if url is None:
        webhooks.remove(tx, inbox.id)
        return changed, UNSET
    webhook, is_new = webhooks.put(tx, inbox.id, inbox.account_id, url, None, None, now)
    return changed, webhook.secret if is_new else UNSET


def delete_inbox(tx: Tx, caller: Caller, inbox_id: str, now: int) -> None:
    """Delete an inbox and all its email"""
    legal_holds.require_all_free(tx, inboxes.lock(tx, inboxes.get(tx, caller.scope, inbox_id).id))
    inbox = inboxes.remove(tx, caller.scope, inbox_id, now)
    connections.remove_of_inbox(tx, inbox.id)
    audit.record_by(tx, caller, "inbox.deleted", inbox.id, now, within=inbox.scope, before=Inbox.of(inbox))
    tx.ring(inboxes.GONE)
