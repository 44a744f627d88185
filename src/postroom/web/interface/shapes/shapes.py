"""What answers carry: the JSON shapes of the interface, made from the nouns."""

from typing import Annotated

from msgspec import UNSET, Raw, Struct, UnsetType
from starlette.responses import Response

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
