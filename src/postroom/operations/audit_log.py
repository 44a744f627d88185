"""Operations on the audit log, which also has the refused attempts of keys, from every interface."""

from typing import Annotated

from msgspec import Meta, Raw, Struct, field

from postroom import limits
from postroom.accounts import actors, audit
from postroom.accounts.keys import Caller
from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.errors import ApiError, Forbidden, NotFound, RecipientNotAllowed
from postroom.fields import AnyJson, AskedMoment, Limit, Offset, Timestamp, read_asked, show_item
from postroom.mailbox import inboxes
from postroom.storage.database import Tx

REFUSALS = (Forbidden, RecipientNotAllowed)  # errors that are recorded in the log


class AuditQuery(Struct, frozen=True):
    since: AskedMoment | None = None
    until: AskedMoment | None = None
    actor: Annotated[str, Meta(description="The id of a key, a session or a reviewer.")] | None = None
    action: Annotated[str, Meta(description="What was done, such as key.created.")] | None = None
    inbox_id: Annotated[str, Meta(description="Only of this inbox.")] | None = field(
        name="inboxId", default=None
    )
    pod_id: Annotated[str, Meta(description="Only of this pod: its id or clientId.")] | None = field(
        name="podId", default=None
    )
    limit: Limit = limits.PAGE
    offset: Offset = 0


class AuditEntry(Struct, rename="camel", frozen=True):
    """`count` is above 1 for what was refused again within the same minute.

    `requestedAt` is the time of the click, for what the dashboard did after its time to undo; else null.
    `traceId` is that of
    the request's `traceparent`, or of the message decided on.
    """

    id: str
    at: Timestamp
    actor: actors.Actor
    address: str
    action: str
    target: str
    before: AnyJson
    after: AnyJson
    count: int
    pod_id: str | None
    inbox_id: str | None
    user_agent: str
    requested_at: Timestamp | None
    trace_id: str | None

    @classmethod
    def of(cls, entry: audit.Entry) -> "AuditEntry":
        before, after = (None if said is None else Raw(said.encode()) for said in (entry.before, entry.after))
        asked = None if entry.asked_at is None else to_iso(entry.asked_at)
        return show_item(
            cls, entry, at=to_iso(entry.created_at), before=before, after=after, requested_at=asked
        )


class AuditPage(Struct, rename="camel", frozen=True):
    data: list[AuditEntry]
    total: int


def list_audit(tx: Tx, caller: Caller, query: AuditQuery) -> AuditPage:
    """List who changed what, and what was refused, newest first"""
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    if scope is None:
        raise NotFound("No such inbox or pod.")
    found, total = audit.list_within(
        tx,
        scope,
        read_asked(query.since, "since"),
        read_asked(query.until, "until"),
        query.actor,
        query.action,
        query.limit,
        query.offset,
    )
    return AuditPage([AuditEntry.of(entry) for entry in found], total)


def audit_refusal(
    tx: Tx,
    caller: Caller,
    within: Scope,
    target: str,
    error: ApiError,
    address: str,
    now: int,
    path: str = "",
) -> None:
    """`target` is what was asked for. If a policy refused a recipient, its own log gets an entry too."""
    what = {"error": error.code, **({"path": path} if path else {}), **error.extras}
    audit.record_refusal(tx, caller.actor, target, within, now, address=address, after=what)
    if isinstance(error, RecipientNotAllowed):
        inbox = inboxes.find(tx, str(error.extras["inboxId"]))
        recipients = [str(error.extras["recipient"])]
        for refusal in [] if inbox is None else policy.find_refused(tx, inbox.scope, recipients):
            policy.record_stop(tx, policy.REFUSED, policy.OUTBOUND, refusal, now)
