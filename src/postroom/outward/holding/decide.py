"""Decisions about mail that waits: approved, rejected, released, postponed, expired, cancelled, retried.

Every function asks `states` first, changes rows and records the event in the caller's transaction, and
returns the bells to ring after the commit.
"""

from collections.abc import Iterable

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from postroom.accounts import audit
from postroom.accounts.actors import SYSTEM, THE_SERVER, Actor
from postroom.accounts.keys import Caller
from postroom.accounts.rules import pauses, policy
from postroom.accounts.scope import Scope
from postroom.errors import ContentChanged, Forbidden, NotHeld
from postroom.events import kinds
from postroom.events.announce import announce
from postroom.events.payload import DeliveryFailure, NewEvent
from postroom.mailbox import attachments, documents, holds, messages
from postroom.mailbox.holds import GivenApproval, Hold
from postroom.mailbox.messages import Message
from postroom.outward import states
from postroom.outward.holding import approvers, checks, hold_back
from postroom.outward.holding.checks import SendCheck
from postroom.outward.states import Move, State
from postroom.queue import deliveries
from postroom.queue.deliveries import Delivery
from postroom.storage.database import Tx
from postroom_mail.writing import content_view


class Decision(Struct, frozen=True):
    """Who decides, when, with which note, and from where."""

    actor: Actor
    base_url: str
    now: int
    note: str | None = None
    address: str = ""
    person: str = ""  # the same for all identities of one person
    user_agent: str = ""
    asked_at: int | None = None  # when a person clicked, for what is done later
    trace_id: str = ""  # of the request that decides
    method: str = ""  # how the person had signed in

    @classmethod
    def of(cls, caller: Caller, base_url: str, now: int, note: str | None = None) -> "Decision":
        person = approvers.of_caller(caller)
        return cls(caller.actor, base_url, now, note, person=person, **audit.came_from(caller))

    def followed_by_the_server(self) -> "Decision":
        """For consequences that nobody decides."""
        return Decision(THE_SERVER, self.base_url, self.now)


def approve(
    tx: Tx, scope: Scope, caller: Caller, message_id: str, content_hash: str, decision: Decision
) -> list[str]:
    message, hold = lock(tx, messages.get(tx, scope, message_id))
    approvers.require_still_may_approve(tx, caller)
    require_other(caller, hold)
    require_not_maker(caller, hold)
    return approve_as(tx, message, hold, content_hash, decision)


def approve_as(
    tx: Tx, message: Message, hold: Hold | None, content_hash: str, decision: Decision
) -> list[str]:
    states.require(Move.APPROVE, states.state_of(message.status, hold))
    assert hold is not None
    if not hold.needs_approval:
        raise NotHeld("This message only waits for the end of a pause: it needs no approval.")
    if hold.expires_at is not None and hold.expires_at <= decision.now:
        raise NotHeld("This message has expired: it was not approved in time.")
    if hold.content_hash != content_hash:
        raise ContentChanged("The contentHash does not match this message. Check it again.")
    given = GivenApproval(decision.person, decision.actor, decision.now)
    before, hold = hold, approvers.add_approval(tx, hold, given)
    if len(hold.approvals) < hold.approvals_needed:
        write_down(tx, "message.approval_given", before, holds.put(tx, hold), decision)
        return []
    excused = checks.find_excuse(tx, hold)
    approved = replace(_decided(hold, holds.APPROVED, decision), expires_at=None, excused=excused)
    write_down(tx, "message.approved", before, approved, decision)
    bells = emit(tx, kinds.MESSAGE_APPROVED, message, approved, decision)
    return bells + go_on(tx, message, approved, decision)


def _decided(hold: Hold, state: str, decision: Decision) -> Hold:
    return replace(hold, state=state, decided_at=decision.now, actor=decision.actor, note=decision.note)


def reject(tx: Tx, scope: Scope, caller: Caller, message_id: str, decision: Decision) -> list[str]:
    message, hold = lock(tx, messages.get(tx, scope, message_id))
    require_other(caller, hold)
    return reject_as(tx, message, hold, decision)


def reject_as(tx: Tx, message: Message, hold: Hold | None, decision: Decision) -> list[str]:
    states.require(Move.REJECT, states.state_of(message.status, hold))
    assert hold is not None
    if not hold.needs_approval:
        raise NotHeld("This message only waits for the end of a pause. Cancel it instead.")
    return _end(tx, message, hold, holds.REJECTED, kinds.MESSAGE_REJECTED, decision)


def require_other(caller: Caller, hold: Hold | None) -> None:
    """The key that sent it, keys made by it and their sessions may not decide."""
    if hold is None or caller.is_person:
        return
    if hold.key_id in (caller.key_id, *caller.lineage):
        raise Forbidden(
            "The key that sent a message, keys made with it and sessions opened with them cannot decide"
            " about it. A person who signs in with a link can."
        )


def require_not_maker(caller: Caller, hold: Hold | None) -> None:
    """A session opened with a key may not approve what a key made by it has sent."""
    is_key_in_person = caller.session_id is not None and not caller.is_person
    if hold is not None and is_key_in_person and caller.key_id in hold.key_lineage:
        raise Forbidden(
            "A key made with the key of this session sent the message. Sign in with a link to approve it."
        )


def cancel(tx: Tx, scope: Scope, message_id: str, decision: Decision) -> list[str]:
    message, hold = lock(tx, messages.get(tx, scope, message_id))
    states.require(Move.CANCEL, states.state_of(message.status, hold))
    known = hold or never_held(tx, message, decision.now)
    return _end(tx, message, known, holds.CANCELLED, kinds.MESSAGE_CANCELLED, decision)


def never_held(tx: Tx, message: Message, now: int) -> Hold:
    """A hold for a message that had none: a cancelled mail needs one, so that nothing revives it."""
    row = tx.one(
        "select messages.key_id, inboxes.account_id, inboxes.pod_id from messages"
        " join inboxes on inboxes.id = messages.inbox_id where messages.id = :id",
        id=message.id,
    )
    assert row is not None
    return Hold(
        message_id=message.id,
        account_id=row["account_id"],
        pod_id=row["pod_id"],
        inbox_id=message.inbox_id,
        key_id=row["key_id"] or "",
        state=holds.CANCELLED,
        reasons=(),
        content_hash="",
        bcc=(),
        is_paused=False,
        expires_at=None,
        send_at=None,
        let_go_at=None,
        due_at=None,
        created_at=now,
    )


def _end(tx: Tx, message: Message, hold: Hold, state: str, kind: str, decision: Decision) -> list[str]:
    """Cancels all that has not left, for good."""
    deliveries.cancel(tx, message.id, decision.now)
    deliveries.settle(tx, message.id)
    ended = replace(_decided(hold, state, decision), due_at=None, is_paused=False, expires_at=None)
    holds.put(tx, ended)
    if decision.actor.type != SYSTEM:
        write_down(tx, kind, hold, ended, decision)
    return emit(tx, kind, message, ended, decision)


def write_down(tx: Tx, action: str, before: Hold, after: Hold, decision: Decision) -> None:
    """Writes the decision to the audit log."""
    audit.record(
        tx,
        decision.actor,
        action,
        after.message_id,
        scope_of(after),
        decision.now,
        address=decision.address,
        user_agent=decision.user_agent,
        asked_at=decision.asked_at,
        trace_id=decision.trace_id or documents.trace_of_message(tx, after.message_id),
        method=decision.method,
        before=holds.show(before),
        after={**msgspec.to_builtins(holds.show(after)), "rendering": content_view.RENDERING},
    )


def retry(tx: Tx, scope: Scope, message_id: str, now: int) -> list[str]:
    """Returns the addresses that are tried again. It ends no hold, and revives nothing that was ended.

    Raises if a recipient is refused by now; reasons to wait are found by the attempt.
    """
    message, hold = lock(tx, messages.get(tx, scope, message_id))
    states.require(Move.RETRY, states.state_of(message.status, hold))
    addresses = deliveries.start_again(tx, message.id, now)
    checks.require_allowed([checks.judge(tx, message.id, addresses, excused_of(hold))])
    deliveries.settle(tx, message.id)
    return addresses


def excused_of(hold: Hold | None) -> str:
    return "" if hold is None else hold.excused


def reschedule(tx: Tx, scope: Scope, message_id: str, send_at: int, decision: Decision) -> list[str]:
    message, hold = lock(tx, messages.get(tx, scope, message_id))
    states.require(Move.RESCHEDULE, states.state_of(message.status, hold))
    assert hold is not None
    moved = holds.put(tx, replace(hold, send_at=send_at, due_at=send_at))
    return emit(tx, kinds.MESSAGE_SCHEDULED, message, moved, decision)


def go_on(tx: Tx, message: Message, hold: Hold, decision: Decision) -> list[str]:
    """For an email that needs no approval any more: it is held, waits for its time, or is queued."""
    by_itself = decision.followed_by_the_server()
    waiting = deliveries.list_unfinished(tx, message.id)
    send_check = checks.judge(tx, message.id, [delivery.target for delivery in waiting], hold.excused)
    if reasons := reasons_to_hold(hold, send_check):
        held = put_on_hold(tx, replace(hold, reasons=()), reasons, decision.now)
        return emit(tx, kinds.MESSAGE_HELD, message, held, by_itself)
    if hold.send_at is not None and hold.send_at > decision.now:
        waits = replace(without_pause(hold), state=holds.SCHEDULED, due_at=hold.send_at)
        return emit(tx, kinds.MESSAGE_SCHEDULED, message, holds.put(tx, waits), by_itself)
    return let_go(tx, message, hold, send_check, by_itself)


def reasons_to_hold(hold: Hold, send_check: SendCheck) -> tuple[str, ...]:
    """Reasons for a person count only if the mail has a hash; else the next attempt makes one."""
    return tuple(reason for reason in send_check.waits if hold.content_hash or reason == holds.PAUSED)


def put_on_hold(tx: Tx, hold: Hold, reasons: Iterable[str], now: int) -> Hold:
    """Adds reasons. One that needs a person clears the earlier decision."""
    added = tuple(reason for reason in reasons if reason not in hold.reasons)
    held = replace(
        hold,
        state=holds.HELD,
        reasons=(*hold.reasons, *added),
        is_paused=hold.is_paused or holds.PAUSED in added,
        due_at=hold.expires_at,
    )
    if any(reason != holds.PAUSED for reason in added):
        held = replace(held, decided_at=None, actor=None, note=None)
        hold_back.ask_reviewers(tx, held, now)
    return holds.put(tx, held)


def let_go(tx: Tx, message: Message, hold: Hold, send_check: SendCheck, decision: Decision) -> list[str]:
    """Queues it, except for recipients that are no longer allowed."""
    now = decision.now
    if hold.send_at is not None:
        hold = replace(without_pause(hold), state=holds.SCHEDULED)
    holds.put(tx, replace(hold, let_go_at=now, due_at=None, is_paused=False))
    deliveries.let_go(tx, message.id, now)
    bells = [deliveries.BELL]
    tx.ring(deliveries.BELL)
    for delivery in deliveries.list_unfinished(tx, message.id):
        bells += refuse(tx, message, scope_of(hold), hold, delivery, send_check, decision)
    deliveries.settle(tx, message.id)
    return bells


def refuse(
    tx: Tx,
    message: Message,
    scope: Scope,
    hold: Hold | None,
    delivery: Delivery,
    send_check: SendCheck,
    decision: Decision,
) -> list[str]:
    """A refused recipient fails with the first reason."""
    for refusal in send_check.refusals:
        if refusal.address != delivery.target:
            continue
        if not deliveries.finish(tx, delivery, deliveries.FAILED, None, refusal.reason, decision.now):
            return []
        if refusal.by_policy is not None:
            policy.record_stop(
                tx, policy.REFUSED, policy.OUTBOUND, refusal.by_policy, decision.now, message.id
            )
        failure = DeliveryFailure(delivery.target, refusal.reason)
        news = _news(tx, kinds.MESSAGE_FAILED, message, scope, hold, decision.now, failure=failure)
        return announce(tx, news, decision.base_url)
    return []


def scope_of(hold: Hold) -> Scope:
    return Scope(hold.account_id, hold.pod_id, hold.inbox_id)


def look_at(tx: Tx, message_id: str, base_url: str, now: int) -> list[str]:
    """Handles a hold that is due: it expires, its time has come, or its pause has ended."""
    by_itself = Decision(THE_SERVER, base_url, now)
    message = messages.find(tx, message_id)
    if message is None:
        tx.run("delete from holds where message_id = :id", id=message_id)
        return []
    message, hold = lock(tx, message)
    if hold is None or hold.due_at is None or hold.due_at > now:
        return []
    state = states.state_of(message.status, hold)
    if state == State.SCHEDULED:
        return go_on(tx, message, hold, by_itself)
    if state != State.HELD:
        holds.put(tx, replace(hold, due_at=None))
        return []
    if hold.expires_at is not None and hold.expires_at <= now:
        return _end(tx, message, hold, holds.EXPIRED, kinds.MESSAGE_EXPIRED, by_itself)
    return end_of_pause(tx, message, hold, by_itself)


def end_of_pause(tx: Tx, message: Message, hold: Hold, by_itself: Decision) -> list[str]:
    if pauses.is_inbox_paused(tx, message.inbox_id):
        holds.put(tx, replace(hold, due_at=hold.expires_at))
        return []
    waits = without_pause(hold)
    if waits.reasons:
        holds.put(tx, replace(waits, due_at=hold.expires_at))
        return []
    released = replace(hold, state=holds.RELEASED, is_paused=False)
    bells = emit(tx, kinds.MESSAGE_RELEASED, message, released, by_itself)
    return bells + go_on(tx, message, released, by_itself)


def without_pause(hold: Hold) -> Hold:
    """A pause is a reason only while it lasts."""
    rest = tuple(reason for reason in hold.reasons if reason != holds.PAUSED)
    return replace(hold, reasons=rest, is_paused=False)


def lock(tx: Tx, message: Message) -> tuple[Message, Hold | None]:
    """Locks the message until the transaction ends, and reads it again."""
    messages.lock(tx, message.id)
    current = messages.find(tx, message.id)
    assert current is not None
    return current, holds.find(tx, message.id)


def emit(tx: Tx, kind: str, message: Message, hold: Hold, decision: Decision) -> list[str]:
    news = _news(tx, kind, message, scope_of(hold), hold, decision.now, actor=decision.actor)
    return announce(tx, news, decision.base_url)


def _news(
    tx: Tx,
    kind: str,
    message: Message,
    scope: Scope,
    hold: Hold | None,
    now: int,
    failure: DeliveryFailure | None = None,
    actor: Actor | None = None,
) -> NewEvent:
    files = attachments.list_of_messages(tx, [message.id] if message.has_attachments else [])
    return NewEvent(
        account_id=scope.account_id,
        pod_id=scope.pod_id or "",
        kind=kind,
        document=documents.decode(message.document),
        files=files.get(message.id, []),
        occurred_at=now,
        failure=failure,
        hold=hold,
        actor=actor,
    )
