"""What answers carry: the JSON shapes of the interface, made from the nouns."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Raw, Struct, UnsetType
from starlette.responses import Response

from postroom.accounts import domains
from postroom.accounts.rules import approval, limits
from postroom.accounts.rules.approval import Approval
from postroom.accounts.rules.limits import Budget
from postroom.clock import to_iso
from postroom.events.payload import Payload
from postroom.fields import Timestamp
from postroom.mailbox import inboxes
from postroom.operations.messages import Message, Truncated
from postroom.outward.orders import SendReceipt


class Inbox(Struct, rename="camel", frozen=True):
    """`webhookSecret` is there once: in the answer that set the inbox's own webhook."""

    id: str
    address: str
    display_name: str | None
    created_at: Timestamp
    webhook_url: str | None
    pod_id: str
    approval: Approval | None
    limits: Budget | None
    metadata: dict[str, str]
    retention_days: int | None
    webhook_secret: str | UnsetType = UNSET

    @classmethod
    def of(cls, inbox: inboxes.Inbox, webhook_secret: str | UnsetType = UNSET) -> "Inbox":
        return cls(
            id=inbox.id,
            address=inbox.address,
            display_name=inbox.display_name,
            created_at=to_iso(inbox.created_at),
            webhook_url=inbox.webhook_url,
            pod_id=inbox.pod_id,
            approval=approval.decode(inbox.approval),
            limits=None if inbox.limits is None else limits.decode(inbox.limits),
            metadata=inboxes.decode_metadata(inbox.metadata),
            retention_days=inbox.retention_days,
            webhook_secret=webhook_secret,
        )


class InboxPage(Struct, rename="camel", frozen=True):
    data: list[Inbox]
    total: int


RawMessageOrNothing = Annotated[Response, Message]
RawReceipt = Annotated[Response, SendReceipt]


class EventPage(Struct, rename="camel", frozen=True):
    data: list[Annotated[Raw, Payload]]
    next: str | None
    truncated: Truncated | UnsetType = UNSET


class ShownRecord(Struct, rename="camel", frozen=True):
    type: str
    name: str
    value: str
    purpose: str
    required: bool
    found: bool | None


class Domain(Struct, rename="camel", frozen=True):
    id: str
    domain: str
    pod_id: str
    status: Literal["pending", "verified"]
    created_at: Timestamp
    verified_at: Timestamp | None
    records: list[ShownRecord]

    @classmethod
    def of(
        cls, domain: domains.Domain, records: list[domains.DnsRecord], found: Sequence[bool] | None = None
    ) -> "Domain":
        there: Sequence[bool | None] = found or [None] * len(records)
        return cls(
            id=domain.id,
            domain=domain.name,
            pod_id=domain.pod_id,
            status="pending" if domain.verified_at is None else "verified",
            created_at=to_iso(domain.created_at),
            verified_at=None if domain.verified_at is None else to_iso(domain.verified_at),
            records=[
                ShownRecord(
                    record.type, record.name, record.value, record.purpose, record.is_required, is_there
                )
                for record, is_there in zip(records, there, strict=True)
            ],
        )


class DomainPage(Struct, rename="camel", frozen=True):
    data: list[Domain]
    total: int
