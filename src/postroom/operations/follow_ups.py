"""Operations on follow-ups: the nudges prepared in a thread, and until when its answer is expected."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.accounts.scope import Scope
from postroom.fields import PageQuery, Timestamp, iso, show_item
from postroom.mailbox import documents, follow_ups, messages, threads
from postroom.mailbox.follow_ups import Expected, FollowUpEnded
from postroom.mailbox.threads import Thread
from postroom.operations.sending.expecting import ReplyWithin, read_expectation
from postroom.outward import waiting_for_answers
from postroom.storage.database import Tx


class FollowUp(Struct, rename="camel", frozen=True):
    """`sentId` is the message that it became: it may still wait for approval."""

    id: str
    thread_id: str
    message_id: Annotated[str, Meta(description="The sent message that it follows.")]
    body: str | None
    template_id: str | None
    due_at: Timestamp
    state: Literal["scheduled", "sent", "cancelled", "failed"]
    reason: Annotated[str | None, Meta(description="Why it is cancelled or failed, such as answered.")]
    sent_id: str | None
    sent_at: Timestamp | None
    created_at: Timestamp


class FollowUpPage(Struct, frozen=True):
    data: list[FollowUp]
    total: int


def list_follow_ups(tx: Tx, caller: Caller, thread_id: str, query: PageQuery) -> FollowUpPage:
    """List the follow-ups of a thread, in the order of their times"""
    thread = threads.get(tx, caller.scope, thread_id)
    found = follow_ups.list_of_thread(tx, thread.id, query.limit, query.offset)
    total = follow_ups.count_of_thread(tx, thread.id)
    return FollowUpPage([show_item(FollowUp, each) for each in found], total)


def delete_follow_up(tx: Tx, caller: Caller, thread_id: str, follow_up_id: str, now: int) -> None:
    """Cancel a follow-up that is not sent yet"""
    thread = threads.get(tx, caller.scope, thread_id)
    found = follow_ups.get_of_thread(tx, thread, follow_up_id)
    if not follow_ups.cancel(tx, found, follow_ups.BY_HAND):
        raise FollowUpEnded("This follow-up was sent or cancelled before.")
    audit.record_by(tx, caller, "follow-up.cancelled", found.id, now, within=scope_of(thread))


def expect_answer(
    tx: Tx, caller: Caller, thread: Thread, given: str | ReplyWithin | None, now: int
) -> Thread:
    """Expect an answer until a time; None ends this and cancels the follow-ups."""
    expects = read_expectation(given)
    before = {"expectReplyBy": iso(thread.awaiting_until)}
    if expects is None:
        changed = follow_ups.end(tx, thread, follow_ups.BY_HAND)
    else:
        until = waiting_for_answers.to_moment(tx, expects, thread.inbox_id, now)
        last = messages.find_last(tx, thread.id, messages.OUTBOUND)
        sender = "" if last is None else documents.first_addresses(last.header_to)
        changed = follow_ups.expect(tx, thread, Expected(until, now, sender, "" if last is None else last.id))
    after = {"expectReplyBy": iso(changed.awaiting_until)}
    where = scope_of(thread)
    audit.record_by(tx, caller, "thread.awaiting", thread.id, now, within=where, before=before, after=after)
    return changed


def scope_of(thread: Thread) -> Scope:
    return Scope(thread.account_id, thread.pod_id, thread.inbox_id)
