"""Checks, stores and queues composed emails as the specification says, many with few statements.

One email goes this way, in `submit_part`:

1. `idempotency.claim_all`: a key that is known gets its first answer again, and nothing else happens.
2. `count_in_inboxes`: its inbox counts it, and stays locked by that until the commit.
3. `require_allowed_reply_to`, `judge`, `require_limits`, `require_no_loops`: any of them may refuse it.
4. `find_holds`: a rule, a pause, its time or `origin_guard.find` may hold it.
5. `store`, `to_deliveries`: thread, message, hold and files become rows, and a delivery for each recipient.
6. `emit`, `answer_of`: a hold is announced, and the answer written.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from postroom import ids, traces
from postroom.accounts import accounts, permissions
from postroom.accounts.rules import approval, limits
from postroom.clock import to_iso
from postroom.mailbox import (
    attachments,
    correspondents,
    drafts,
    file_links,
    holds,
    inboxes,
    labels,
    messages,
    thread_digests,
    thread_participants,
    threads,
    usage,
)
from postroom.mailbox.documents import Document
from postroom.mailbox.holds import Hold
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.messages import OUTBOUND, PENDING, NewMessage
from postroom.mailbox.search import indexing
from postroom.mailbox.thread_digests import Digest
from postroom.mailbox.threads import Thread
from postroom.mailbox.usage import UsageGrowth
from postroom.outward import disclosing, own_events, waiting_for_answers
from postroom.outward.header_addresses import require_allowed_reply_to, require_own_senders
from postroom.outward.holding import approval_rules, checks, origin_guard
from postroom.outward.holding.approval_rules import InboxRules
from postroom.outward.holding.checks import SendCheck, SendCheckInput
from postroom.outward.holding.hold_back import answer_of, emit, find_holds, to_receipt
from postroom.outward.send_stages import ComposedMail, Context, Order, Ready, SendAnswer, Submission
from postroom.queue import deliveries, idempotency, suppressions
from postroom.queue.deliveries import NewDelivery
from postroom.queue.idempotency import Claim
from postroom.storage.database import Tx
from postroom_mail.mime.address import Address, normalize

PART_MAX_SIZE = 1024 * 1024


def submit(tx: Tx, submissions: list[Submission]) -> list[SendAnswer]:
    """Submit the emails. The checks apply to all of them together. If they fail, smaller groups are tried."""
    return [answer for part in in_parts(submissions) for answer in submit_part(tx, part)]


def in_parts(submissions: list[Submission]) -> Iterator[list[Submission]]:
    """Split into parts with each idempotency key once, so that a second request finds the first one stored.

    Parts are also small, since all rows of a part are in memory together.
    """
    part: dict[tuple[str, str], Submission] = {}
    size = 0
    for submission in submissions:
        key = (submission.caller.account_id, submission.order.idempotency_key)
        own_size = row_size(submission)
        if part and (key in part or size + own_size > PART_MAX_SIZE):
            yield list(part.values())
            part, size = {}, 0
        part[key] = submission
        size += own_size
    yield list(part.values())


def row_size(submission: Submission) -> int:
    """Estimate the size, in bytes or characters."""
    composed = submission.composed
    texts = len(composed.draft.text) + len(composed.draft.html or "") + len(composed.own_text)
    return texts + (0 if submission.blob else len(composed.raw))


def submit_part(tx: Tx, submissions: list[Submission]) -> list[SendAnswer]:
    """Do all that a send does, line by line as in the specification."""
    require_unchanged(tx, submissions)
    ready = [make_ready(submission) for submission in submissions]
    known = idempotency.claim_all(tx, [to_claim(each) for each in ready])
    new = [each for each, answer in zip(ready, known, strict=True) if answer is None]
    for each in new:
        if (draft := each.submission.order.draft) is not None:
            drafts.take(tx, draft.id, draft.version)
        if each.submission.order.uploads:
            file_links.take(tx, each.inbox_id, each.submission.order.uploads, each.submission.now)
    owners = count_in_inboxes(tx, new)
    require_own_senders(new, owners)
    for each in new:
        waiting_for_answers.take(tx, each)
        require_allowed_reply_to(tx, each.submission.caller, each.submission.order.reply_to)
    above = approval_rules.read_all(tx, owners.keys())
    disclosing.require_current(new, above)
    accounts.require_room(any(each.is_full for each in above.values()))
    clearances = judge(tx, new, owners, above)
    checks.require_allowed(clearances)
    cold = find_cold(tx, new)
    require_limits(tx, new, owners, cold)
    require_no_loops(tx, new)
    guarded = origin_guard.find(tx, new, above)
    origin_guard.require_allowed(guarded)
    new = origin_guard.marked(new, guarded)
    waiting = find_holds(tx, new, above, clearances, guarded)
    store(tx, new, waiting)
    origin_guard.record(tx, new, guarded)
    for each in sorted(new, key=lambda each: each.inbox_id):
        if each.submission.composed.draft.calendar is not None:
            own_events.record_sent(tx, each)
    deliveries.add_all(tx, [delivery for each in new for delivery in to_deliveries(each, cold, waiting)])
    bells = emit(tx, new, waiting)
    return [
        SendAnswer(answer_of(each, waiting), is_replay=False, bells=bells)
        if answer is None
        else SendAnswer(answer, is_replay=True)
        for each, answer in zip(ready, known, strict=True)
    ]


def require_unchanged(tx: Tx, submissions: list[Submission]) -> None:
    """Raises Outdated if a cached caller or inbox has changed since."""
    remembered = [each for each in submissions if each.is_remembered]
    if remembered:
        known = [(each.caller, each.around.inbox) for each in remembered]
        inboxes.require_unchanged(tx, known, max(each.now for each in remembered))


def make_ready(submission: Submission) -> Ready:
    around, composed, now = submission.around, submission.composed, submission.now
    thread = around.thread or threads.new(around.inbox, composed.draft.subject, is_read=True, now=now)
    document = to_document(around.inbox, thread, submission.order, composed, now)
    answer = msgspec.json.encode(to_receipt(document))
    return Ready(submission, thread, document, answer, unique_addresses(submission.order, composed))


def to_claim(ready: Ready) -> Claim:
    submission, order = ready.submission, ready.submission.order
    return Claim(
        submission.caller.scope,
        submission.around.inbox,
        order.idempotency_key,
        order.request_hash,
        ready.answer,
        submission.now,
    )


def count_in_inboxes(tx: Tx, new: list[Ready]) -> dict[str, Inbox]:
    """Count in the order of ids, so that two nodes cannot deadlock."""
    of_inboxes: dict[str, list[Ready]] = defaultdict(list)
    for each in new:
        of_inboxes[each.inbox_id].append(each)
    return {
        inbox_id: inboxes.count(
            tx,
            inbox_id,
            outbound=len(sends),
            new_threads=sum([each.starts_thread for each in sends]),
            stored_bytes=sum([len(each.submission.composed.raw) for each in sends]),
        )
        for inbox_id, sends in sorted(of_inboxes.items())
    }


def judge(
    tx: Tx, new: list[Ready], owners: dict[str, Inbox], above: dict[str, InboxRules]
) -> list[SendCheck]:
    suppressed = suppressions.find_all(
        tx, [(each.account_id, address) for each in new for address in each.addresses]
    )
    return checks.judge_all(
        tx,
        [
            SendCheckInput(
                within=owners[each.inbox_id].scope,
                addresses=each.addresses,
                has_policy=above[each.inbox_id].has_policy,
                suppressed={
                    address: suppressed[each.account_id, address]
                    for address in each.addresses
                    if (each.account_id, address) in suppressed
                },
                key=None if permissions.SEND in each.submission.caller.permissions else approval.KEY,
                is_paused=above[each.inbox_id].is_paused,
                is_needless=False,
            )
            for each in new
        ],
    )


def unique_addresses(order: Order, composed: ComposedMail) -> list[str]:
    """Return each recipient once, in the order of To, Cc and Bcc."""
    return list(
        dict.fromkeys(normalize(address.address) for address in (*order.to, *composed.cc, *order.bcc))
    )


def find_cold(tx: Tx, new: list[Ready]) -> set[tuple[str, str]]:
    """Return pairs of an inbox and a recipient that never wrote to it."""
    asked = [(each.inbox_id, address) for each in new for address in each.addresses]
    return set(asked) - correspondents.find(tx, asked)


def require_limits(tx: Tx, new: list[Ready], owners: dict[str, Inbox], cold: set[tuple[str, str]]) -> None:
    """Check all sends against the earliest time: at worst too strict. A send checked alone uses its own."""
    strangers: dict[str, set[str]] = defaultdict(set)
    for inbox_id, address in cold:
        strangers[inbox_id].add(address)
    require_budgets_of_keys(tx, new, cold)
    above = {each.inbox_id: each.submission.allowed for each in new}
    for inbox_id, moments in moments_by([(each.inbox_id, each.submission.now) for each in new]).items():
        owner = owners[inbox_id]
        budget = limits.decode(owner.limits)
        cold_here, first, allowed = strangers[inbox_id], min(moments), above[inbox_id]
        limits.require_sends(tx, "inbox_id", inbox_id, budget, len(moments), first, allowed)
        limits.require_cold_limit(tx, inbox_id, owner.created_at, budget, cold_here, first, allowed)


def require_budgets_of_keys(tx: Tx, new: list[Ready], cold: set[tuple[str, str]]) -> None:
    """Check keys with a budget; their new recipients are counted for the sending inbox."""
    budgeted = [each for each in new if each.submission.caller.limits is not None]
    for budget_id, moments in moments_by(
        [(each.submission.caller.budget_id, each.submission.now) for each in budgeted]
    ).items():
        budget = next(
            limits.decode(each.submission.caller.limits)
            for each in budgeted
            if each.submission.caller.budget_id == budget_id
        )
        limits.require_sends(tx, "budget_id", budget_id, budget, len(moments), min(moments))
    for each in budgeted:
        budget = limits.decode(each.submission.caller.limits)
        strangers = {address for inbox_id, address in cold if inbox_id == each.inbox_id}
        if budget.cold_per_day is not None:
            limits.require_cold_limit(tx, each.inbox_id, 0, budget, strangers, each.submission.now)


def require_no_loops(tx: Tx, new: list[Ready]) -> None:
    replies = [each for each in new if answers_a_machine(each.submission.around)]
    for thread_id, moments in moments_by([(each.thread.id, each.submission.now) for each in replies]).items():
        limits.require_no_loop(tx, thread_id, len(moments), min(moments))


def moments_by(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for name, moment in pairs:
        found[name].append(moment)
    return found


def answers_a_machine(around: Context) -> bool:
    return around.thread is not None and around.last_inbound is not None and around.last_inbound.automated


def store(tx: Tx, new: list[Ready], waiting: dict[str, Hold]) -> None:
    put_into_threads(tx, new)
    messages.add_all(tx, [to_new_message(each, each.document.id in waiting) for each in new])
    holds.add_all(tx, list(waiting.values()))
    for each in new:
        waiting_for_answers.begin(tx, each)
    indexing.enqueue_all(tx, [each.document.id for each in new])
    usage.count_all(tx, [to_use(each.submission) for each in new])
    attachments.add_all(
        tx, [(each.document.id, file) for each in new for file in each.submission.composed.files]
    )
    thread_participants.add_all(
        tx,
        [
            (each.thread.id, address)
            for each in new
            for address in (each.submission.composed.draft.from_address, *each.addresses)
        ],
    )
    for each in new:
        labels.add_to_new(
            tx, each.thread, each.document.id, each.submission.order.labels, each.submission.now
        )


def put_into_threads(tx: Tx, new: list[Ready]) -> None:
    digests = {each.document.id: to_digest(each) for each in new}
    threads.add_all(
        tx,
        [
            replace(each.thread, digest=thread_digests.encode(digests[each.document.id]))
            for each in new
            if each.starts_thread
        ],
    )
    joined = {each.thread.id: each.thread for each in new if not each.starts_thread}
    for each in new:
        if not each.starts_thread:
            thread = joined[each.thread.id]
            digest = thread_digests.append(thread.digest, digests[each.document.id])
            is_read = thread.is_read or not each.submission.order.keeps_unread
            joined[thread.id] = threads.add_message(
                tx, thread, is_read=is_read, now=each.submission.now, digest=digest
            )
            waiting_for_answers.leave_to_the_sender(tx, joined[thread.id], each)


def to_digest(ready: Ready) -> Digest:
    composed, own = ready.submission.composed, thread_digests.of_inbox(ready.submission.around.inbox)
    return thread_digests.of_document(ready.document, bool(composed.files), ready.submission.now, own)


def to_use(submission: Submission) -> UsageGrowth:
    return submission.around.inbox.stores(len(submission.composed.raw), submission.now)


def to_new_message(ready: Ready, has_hold: bool) -> NewMessage:
    submission = ready.submission
    return NewMessage(
        document=ready.document,
        status=PENDING,
        from_address=submission.composed.draft.from_address,
        has_attachments=bool(submission.composed.files),
        raw=None if submission.blob else submission.composed.raw,
        blob=submission.blob,
        created_at=submission.now,
        has_hold=has_hold,
        key_id=submission.caller.key_id,
        budget_id=submission.caller.budget_id,
        size_bytes=len(submission.composed.raw),
    )


def to_deliveries(ready: Ready, cold: set[tuple[str, str]], waiting: dict[str, Hold]) -> list[NewDelivery]:
    now = ready.submission.now
    state = deliveries.HELD if ready.document.id in waiting else deliveries.PENDING
    return [
        NewDelivery(
            id=ids.new(ids.MAIL_DELIVERY, now),
            account_id=ready.account_id,
            inbox_id=ready.inbox_id,
            kind=deliveries.MAIL,
            message_id=ready.document.id,
            target=address,
            lane=address.rpartition("@")[2],
            position=position,
            is_cold=int((ready.inbox_id, address) in cold),
            has_unsubscribe=int(ready.submission.order.unsubscribe),
            state=state,
            due_at=now,
            created_at=now,
        )
        for position, address in enumerate(ready.addresses)
    ]


def to_document(inbox: Inbox, thread: Thread, order: Order, composed: ComposedMail, now: int) -> Document:
    draft, (trace_id, _) = composed.draft, traces.read(order.traceparent) or ("", "")
    return Document(
        id=ids.new(ids.MESSAGE, now),
        thread_id=thread.id,
        inbox_id=inbox.id,
        direction=OUTBOUND,
        from_addr=str(Address(draft.from_name, draft.from_address)),
        to_addr=inbox.address,
        header_to=", ".join(draft.to),
        delivery_role=None,
        cc=list(draft.cc),
        subject=draft.subject,
        body_text=draft.text,
        body_html=draft.html or "",
        created_at=to_iso(now),
        rfc_message_id=draft.message_id,
        reply_text=composed.own_text,
        auth=None,
        automated=order.is_automated,
        new_participant=False,
        codes=[],
        links=[],
        calendar=composed.appointment or UNSET,
        trace_id=trace_id or UNSET,
        metadata=order.metadata or UNSET,
        bcc=list(map(str, order.bcc)),
        reply_to=order.reply_to,
        headers=draft.headers,
        redirect_of=order.redirect_of or UNSET,
    )
