"""Operations on held mail: approvals, pauses, and limits of sending."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from postroom.accounts import audit
from postroom.accounts.actors import Actor
from postroom.accounts.keys import Caller
from postroom.accounts.rules import limits, pauses
from postroom.accounts.rules.limits import Use
from postroom.accounts.rules.pauses import Pause
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.config import Config
from postroom.deliverability import reputation
from postroom.events import notifications
from postroom.fields import Limit, Offset, Timestamp, Truncated
from postroom.limits import NOTE_CHARACTERS, PAGE
from postroom.mailbox import documents, holds, inboxes, message_json, messages
from postroom.mailbox.holds import ShownHold
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.operations.messages import RawMessage, show_message
from postroom.outward.holding import decide, stop
from postroom.outward.holding.decide import Decision
from postroom.storage.database import Tx

Note = Annotated[
    str,
    Meta(
        max_length=NOTE_CHARACTERS, pattern=r"^[^\x00]*$", description="Why; saved, and shown in the event."
    ),
]


class ApprovalQuery(Struct, rename="camel", frozen=True):
    state: Annotated[
        Literal["held", "scheduled", "approved", "released", "rejected", "expired", "cancelled"],
        Meta(description="Those in this state."),
    ] = "held"
    inbox_id: Annotated[str, Meta(description="Only of this inbox.")] | None = None
    pod_id: Annotated[str, Meta(description="Only of this pod: its id or clientId.")] | None = None
    limit: Limit = PAGE
    offset: Offset = 0


class Approve(Struct, rename="camel", frozen=True):
    content_hash: Annotated[str, Meta(description="Hash of the content you saw, from `hold`.")]
    note: Note | None = None


class Reject(Struct, frozen=True):
    note: Note | None = None


class HeldMessage(Struct, rename="camel", frozen=True):
    message: RawMessage
    hold: ShownHold


class ApprovalPage(Struct, rename="camel", frozen=True):
    data: list[HeldMessage]
    total: int
    truncated: Truncated | UnsetType = UNSET


class Paused(Struct, rename="camel", frozen=True):
    paused: bool
    since: Timestamp | None
    by: Actor | None
    reason: Annotated[str | None, Meta(description="Why the server suspended the inbox.")] = None

    @classmethod
    def of(cls, pause: Pause | None) -> "Paused":
        if pause is None:
            return cls(False, None, None)
        return cls(True, to_iso(pause.since), pause.actor, pause.reason)


class Meter(Struct, rename="camel", frozen=True):
    limit: Annotated[int | None, Meta(description="null: it is off.")]
    used: int
    resets_at: Timestamp | None

    @classmethod
    def of(cls, use: Use) -> "Meter":
        return cls(use.limit, use.used, None if use.resets_at is None else to_iso(use.resets_at))


class InboxLimits(Struct, rename="camel", frozen=True):
    per_minute: Meter
    per_day: Meter
    cold_per_day: Meter

    @classmethod
    def of(cls, uses: dict[str, Use]) -> "InboxLimits":
        return cls(Meter.of(uses["per_minute"]), Meter.of(uses["per_day"]), Meter.of(uses["cold_per_day"]))


def list_approvals(tx: Tx, caller: Caller, query: ApprovalQuery, links: Links) -> ApprovalPage:
    """List the sends that wait for a decision, oldest first; or those in another state, newest first"""
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    if scope is None:
        return ApprovalPage([], 0)
    found, total = holds.list_within(tx, scope, query.state, query.limit, query.offset)
    fitting = those_that_fit(tx, found)
    return ApprovalPage(show(tx, fitting, links), total, len(fitting) < len(found) or UNSET)


def those_that_fit(tx: Tx, found: list[holds.Hold]) -> list[holds.Hold]:
    return found[: documents.count_fitting(tx, [hold.message_id for hold in found])]


def show(tx: Tx, found: list[holds.Hold], links: Links) -> list[HeldMessage]:
    held = {hold.message_id: hold for hold in found}
    kept = messages.list_by_ids(tx, list(held))
    shown = message_json.to_json(tx, kept, links)
    return [
        HeldMessage(Raw(document), holds.show(held[message.id]))
        for message, document in zip(kept, shown, strict=True)
    ]


def approve_message(
    tx: Tx, caller: Caller, message_id: str, body: Approve, config: Config, links: Links, now: int
) -> RawMessage:
    """Approve a held message; contentHash says which content you saw"""
    decision = Decision.of(caller, config.base_url, now, body.note)
    decide.approve(tx, caller.scope, caller, message_id, body.content_hash, decision)
    return show_message(tx, caller.scope, message_id, links)


def reject_message(
    tx: Tx, caller: Caller, message_id: str, body: Reject, config: Config, links: Links, now: int
) -> RawMessage:
    """Reject a held message; it is never sent"""
    decision = Decision.of(caller, config.base_url, now, body.note)
    decide.reject(tx, caller.scope, caller, message_id, decision)
    return show_message(tx, caller.scope, message_id, links)


def get_inbox_limits(tx: Tx, caller: Caller, inbox: Inbox, config: Config, now: int) -> InboxLimits:
    """Get how much an inbox may send, and has sent"""
    return InboxLimits.of(inboxes.read_budget(tx, inbox, limits.in_force(config, caller.account_limits), now))


def get_pause(tx: Tx, within: Scope) -> Paused:
    """Get whether sending is paused"""
    return Paused.of(pauses.find(tx, pauses.scope_of(within)))


def put_pause(tx: Tx, caller: Caller, within: Scope, config: Config, now: int) -> Paused:
    """Hold every send, new and waiting, until the pause ends"""
    stop.begin_pause(tx, within, Decision.of(caller, config.base_url, now))
    audit.record_by(tx, caller, "pause.begun", pauses.scope_of(within), now, within=within)
    who = caller.actor.name
    notifications.notify(tx, caller.account_id, notifications.PAUSED, who, f"{config.base_url}/app", now)
    return get_pause(tx, within)


def delete_pause(tx: Tx, caller: Caller, within: Scope, now: int) -> Paused:
    """End the pause; email that nothing else holds is sent"""
    ended = pauses.find(tx, pauses.scope_of(within))
    stop.end_pause(tx, within, now)
    if ended is not None and ended.reason is not None and within.inbox_id is not None:
        reputation.reactivate(tx, within, ended.reason, caller.actor, now)
    audit.record_by(tx, caller, "pause.ended", pauses.scope_of(within), now, within=within)
    return Paused.of(None)
