"""Decides which sends are held or scheduled: their holds, with the hash of the content, and their events."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from postroom import ids
from postroom.accounts import audit, keys
from postroom.accounts.rules import approval
from postroom.accounts.rules.origin_guard import ORIGIN
from postroom.accounts.scope import Scope
from postroom.clock import HOUR, SECOND
from postroom.errors import Forbidden
from postroom.events import kinds
from postroom.events.announce import announce_all
from postroom.events.payload import NewEvent
from postroom.mailbox import holds, inboxes, messages, threads
from postroom.mailbox.documents import Document
from postroom.mailbox.holds import Hold
from postroom.mailbox.messages import PENDING, SENT
from postroom.mailbox.origins import ValueOrigin
from postroom.outward.holding import approval_rules
from postroom.outward.holding.approval_rules import InboxRules, Sending
from postroom.outward.holding.checks import SendCheck
from postroom.outward.holding.judgement import Unjudged, quoted_of_ours
from postroom.outward.holding.origin_guard import GuardFinding
from postroom.outward.send_stages import Order, Ready, RuleFacts, SendReceipt, Submission
from postroom.queue import deliveries, idempotency
from postroom.queue.deliveries import NewDelivery
from postroom.storage.database import Tx
from postroom_mail.mime.address import mailbox_of


def find_holds(
    tx: Tx,
    new: list[Ready],
    rules_of: dict[str, InboxRules],
    clearances: Sequence[SendCheck],
    guarded: Mapping[str, GuardFinding],
) -> dict[str, Hold]:
    """Holds of emails that do not leave at once, by message id. Raises Unjudged if one must be read first."""
    found: dict[str, Hold] = {}
    for each, send_check in zip(new, clearances, strict=True):
        above = rules_of[each.inbox_id]
        is_free = above.ask_nothing(each.submission.caller)
        send_at = moment_to_send(each.submission)
        foreign = origins_held(guarded.get(each.document.id))
        if is_free and not above.has_canary and not send_check.waits and send_at is None and not foreign:
            continue
        if (judgement := each.submission.judgement) is None:
            raise Unjudged
        asked = [] if is_free else approval_rules.find_reasons(tx, to_sending(tx, each, judgement), above)
        found_out = [holds.CANARY] if above.has_canary and judgement.has_canary else []
        found_out += [ORIGIN] if foreign else []
        reasons = [*asked, *found_out, *send_check.waits]
        if reasons and each.submission.composed.seal:
            raise cannot_be_held(each.submission.composed.seal, reasons)
        if reasons or send_at is not None:
            hold = to_hold(each, above, reasons, send_at, judgement.content_hash)
            found[each.document.id] = replace(hold, risk=find_risk(tx, each, reasons), origins=foreign)
    return found


def origins_held(guarded: GuardFinding | None) -> tuple[ValueOrigin, ...]:
    return guarded.origins if guarded is not None and guarded.holds else ()


def find_risk(tx: Tx, ready: Ready, reasons: Sequence[str]) -> int:
    if holds.CANARY in reasons:
        return holds.CANARY_RISK
    of_thread = 0 if ready.starts_thread else threads.risk_of(tx, ready.thread.id)
    return max(of_thread, int(approval.RISK in reasons))


def cannot_be_held(seal: str, reasons: Sequence[str]) -> Forbidden:
    """A person approves what is shown and hashed. The bytes of a signed or encrypted email are neither."""
    return Forbidden(
        f"This email is {seal} and would be held ({', '.join(reasons)}). Approvers must be able to read all"
        " of a held email: send it unsigned and unencrypted."
    )


def moment_to_send(submission: Submission) -> int | None:
    order = submission.order
    if order.send_at is not None:
        return order.send_at
    return submission.now + order.undo_seconds * SECOND if order.undo_seconds else None


def to_sending(tx: Tx, ready: Ready, judgement: RuleFacts) -> Sending:
    submission = ready.submission
    return Sending(
        caller=submission.caller,
        inbox_id=ready.inbox_id,
        thread_id=None if ready.starts_thread else ready.thread.id,
        addresses=ready.addresses,
        has_links=has_links(tx, submission, judgement),
        has_files=bool(submission.composed.files) or judgement.has_files,
        now=submission.now,
        passes_on=passed_on(submission.order),
    )


def passed_on(order: Order) -> tuple[str, ...]:
    whole = order.forward_of or order.redirect_of
    return order.files_of if whole is None else (whole, *order.files_of)


def has_links(tx: Tx, submission: Submission, judgement: RuleFacts) -> bool:
    """Ignores the quote, unless it quotes an email of our own that was never sent, or an imported one."""
    quoted = quoted_of_ours(submission.around)
    if quoted is None:
        return judgement.has_links
    message = messages.find(tx, quoted.id)
    has_left = message is not None and message.status == SENT and not message.is_imported
    return judgement.has_links if has_left else judgement.has_links_with_quote


def to_hold(
    ready: Ready, above: InboxRules, reasons: list[str], send_at: int | None, content_hash: str
) -> Hold:
    submission, inbox = ready.submission, ready.submission.around.inbox
    is_held = bool(reasons)
    bcc = tuple(str(address) for address in submission.order.bcc)
    needs_approval = any(reason != holds.PAUSED for reason in reasons)
    conditions = approval_rules.conditions(above, submission.caller)
    expires_at = submission.now + conditions.expires_hours * HOUR if needs_approval else None
    return Hold(
        message_id=ready.document.id,
        account_id=inbox.account_id,
        pod_id=inbox.pod_id,
        inbox_id=inbox.id,
        key_id=submission.caller.key_id,
        state=holds.HELD if is_held else holds.SCHEDULED,
        reasons=tuple(reasons),
        content_hash=content_hash,
        bcc=bcc,
        is_paused=holds.PAUSED in reasons,
        expires_at=expires_at,
        send_at=send_at,
        let_go_at=None,
        due_at=expires_at if is_held else send_at,
        created_at=submission.now,
        key_lineage=submission.caller.lineage,
        approvals_needed=conditions.approvals,
    )


def answer_of(ready: Ready, waiting: dict[str, Hold]) -> bytes:
    hold = waiting.get(ready.document.id)
    return ready.answer if hold is None else msgspec.json.encode(to_receipt(ready.document, hold))


def emit(tx: Tx, new: list[Ready], waiting: dict[str, Hold]) -> tuple[str, ...]:
    """Records events and reviewer notices for held mail. Returns the bells to ring."""
    held = [(each, waiting[each.document.id]) for each in new if each.document.id in waiting]
    if not held:
        return ()
    for each, _ in held:
        key, scope = each.submission.order.idempotency_key, each.submission.caller.scope
        idempotency.set_answer(tx, scope, key, each.answer, answer_of(each, waiting))
    for each, hold in held:
        if holds.CANARY in hold.reasons:
            record_canary(tx, each, hold)
    notices = [notice for each, hold in held for notice in to_notices(tx, each, hold)]
    deliveries.add_all(tx, notices)
    told = announce_all(tx, [to_new_event(each, hold) for each, hold in held], held[0][0].submission.base_url)
    rung = [deliveries.HOLDS_BELL, *([deliveries.NOTICE_BELL] if notices else [])]
    return tuple(dict.fromkeys([*rung, *(bell for bells in told for bell in bells)]))


def record_canary(tx: Tx, ready: Ready, hold: Hold) -> None:
    """Writes to the audit log, which the sending key cannot change."""
    where = ready.submission.around.inbox.scope
    sent_to = {"inboxId": hold.inbox_id, "recipients": list(ready.addresses)}
    audit.record_by(
        tx,
        ready.submission.caller,
        "canary.found",
        hold.message_id,
        hold.created_at,
        within=where,
        after=sent_to,
    )


def to_notices(tx: Tx, ready: Ready, hold: Hold) -> list[NewDelivery]:
    """If approval is needed: a notice to each reviewer, but to no inbox that the sending key could read."""
    if not hold.needs_approval:
        return []
    caller = ready.submission.caller
    above = approval_rules.read_all(tx, {ready.inbox_id})[ready.inbox_id]
    reviewers = approval_rules.conditions(above, caller).reviewers
    reads = None if caller.is_person else caller.scope
    return _to_notices(tx, hold, reviewers, reads, hold.created_at)


def ask_reviewers(tx: Tx, hold: Hold, now: int) -> None:
    """Notifies reviewers of account, pod and inbox about an email that has to wait for a person after all."""
    above = approval_rules.read_all(tx, {hold.inbox_id}).get(hold.inbox_id)
    if above is None:
        return
    key = keys.find(tx, hold.account_id, hold.key_id)
    reads = None if key is None else key.scope
    notices = _to_notices(tx, hold, approval.add_up(above.levels).reviewers, reads, now)
    if notices:
        deliveries.add_all(tx, notices)
        tx.ring(deliveries.NOTICE_BELL)


def _to_notices(
    tx: Tx, hold: Hold, reviewers: Sequence[str], reads: Scope | None, now: int
) -> list[NewDelivery]:
    return [
        NewDelivery(
            id=ids.new(ids.NOTICE_DELIVERY, now),
            account_id=hold.account_id,
            inbox_id=hold.inbox_id,
            kind=deliveries.NOTICE,
            message_id=hold.message_id,
            target=reviewer,
            lane=reviewer.rpartition("@")[2],
            position=position,
            due_at=now,
            created_at=now,
        )
        for position, reviewer in enumerate(reviewers)
        if not is_read_by_sender(tx, hold.inbox_id, reads, reviewer)
    ]


def is_read_by_sender(tx: Tx, inbox_id: str, reads: Scope | None, reviewer: str) -> bool:
    """A reader of a notice can decide: the sending key must not get it. `reads` is its scope."""
    inbox = inboxes.find_by_address(tx, mailbox_of(reviewer))
    if inbox is None:
        return False
    return inbox.id == inbox_id or (reads is not None and inboxes.is_within(inbox, reads))


def to_new_event(ready: Ready, hold: Hold) -> NewEvent:
    kind = kinds.MESSAGE_HELD if hold.state == holds.HELD else kinds.MESSAGE_SCHEDULED
    submission = ready.submission
    return NewEvent(
        account_id=ready.account_id,
        pod_id=hold.pod_id,
        kind=kind,
        document=ready.document,
        files=submission.composed.files,
        occurred_at=submission.now,
        hold=hold,
        actor=submission.caller.actor,
    )


def to_receipt(document: Document, hold: Hold | None = None) -> SendReceipt:
    return SendReceipt(
        id=document.id,
        thread_id=document.thread_id,
        inbox_id=document.inbox_id,
        direction=document.direction,
        created_at=document.created_at,
        message_id=document.id,
        provider_message_id=document.rfc_message_id,
        status=PENDING,
        hold=UNSET if hold is None else holds.show(hold),
    )
