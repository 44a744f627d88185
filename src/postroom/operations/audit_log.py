"""Operations on the audit log, which also has the refused attempts of keys, from every interface."""

from typing import Annotated

from msgspec import Meta, Struct, field

from postroom import limits
from postroom.accounts import audit, audit_chain
from postroom.accounts.audit_chain import AuditHead
from postroom.accounts.audit_entries import AuditEntry
from postroom.accounts.keys import Caller
from postroom.accounts.rules import policy
from postroom.accounts.scope import Scope
from postroom.errors import ApiError, Forbidden, RecipientNotAllowed, no_such
from postroom.fields import AskedMoment, Limit, Offset, read_asked
from postroom.mailbox import inboxes
from postroom.storage.database import Tx

REFUSALS = (Forbidden, RecipientNotAllowed)  # errors that are recorded in the log


class AuditQuery(Struct, frozen=True):
    since: Annotated[AskedMoment, Meta(description="Only from this time on.")] | None = None
    until: Annotated[AskedMoment, Meta(description="Only before this time.")] | None = None
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


class AuditPage(Struct, rename="camel", frozen=True):
    data: list[AuditEntry]
    total: int


def list_audit(tx: Tx, caller: Caller, query: AuditQuery) -> AuditPage:
    """List who changed what, and what was refused, newest first"""
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    if scope is None:
        raise no_such("inbox or pod")
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


def get_audit_head(tx: Tx, caller: Caller, now: int) -> AuditHead:
    """Get the signed head of the audit log: with it, a later change of any entry before it shows"""
    return audit_chain.sign_head(tx, caller.account_id, now)


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
    """Record a refusal. `target` was asked for. A recipient that a policy refused is also in its own log."""
    what = {"error": error.code, **({"path": path} if path else {}), **error.extras}
    audit.record_refusal(tx, caller.actor, target, within, now, address=address, after=what)
    if isinstance(error, RecipientNotAllowed):
        inbox = inboxes.find(tx, str(error.extras["inboxId"]))
        recipients = [str(error.extras["recipient"])]
        for refusal in [] if inbox is None else policy.find_refused(tx, inbox.scope, recipients):
            policy.record_stop(tx, policy.REFUSED, policy.OUTBOUND, refusal, now)
