"""Operations on threads: listing, reading, the read flag and labels, deletion."""

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, field
from msgspec.structs import replace

from postroom import limits
from postroom.accounts import audit
from postroom.accounts.keys import Caller
from postroom.accounts.permissions import MANAGING, WRITING, require_any
from postroom.accounts.scope import Scope
from postroom.clock import to_iso
from postroom.errors import BadRequest
from postroom.fields import InboxFilter, Limit, Moment, Offset, PodFilter, Timestamp, Truncated, iso
from postroom.mailbox import (
    canaries,
    inboxes,
    labels,
    message_json,
    messages,
    related,
    thread_digests,
    threads,
)
from postroom.mailbox.documents import Verdict
from postroom.mailbox.folders import flags
from postroom.mailbox.follow_ups import Awaiting, show_awaiting
from postroom.mailbox.inboxes import Inbox
from postroom.mailbox.message_json import Links
from postroom.mailbox.thread_digests import ThreadDigest
from postroom.mailbox.thread_work import DONE
from postroom.operations import assignments, follow_ups, legal_holds
from postroom.operations.messages import NewLabels, RawMessages
from postroom.operations.sending.expecting import ExpectReplyBy
from postroom.storage.database import Tx
from postroom.upkeep import deletion

Label = Annotated[str, Meta(max_length=limits.LABEL_CHARACTERS, description="Only threads with this label.")]
State = Annotated[
    Literal["open", "snoozed", "done", "awaiting", "overdue"],
    Meta(
        description="open: neither snoozed nor done. awaiting: an answer is expected. overdue: it did not"
        " come."
    ),
]
AssigneeFilter = Annotated[
    str, Meta(description="Only threads of this user: an id; me, for the person behind the key; or none.")
]
IsRead = Annotated[bool | None, Meta(description="false gives the unread ones.")]


class ThreadQuery(Struct, frozen=True):
    is_read: IsRead = None
    is_read_alias: IsRead = field(default=None, name="isRead")
    label: Label | None = None
    assignee: AssigneeFilter | None = None
    state: State | None = None
    limit: Limit = limits.PAGE
    offset: Offset = 0

    @property
    def flag(self) -> bool | None:
        return self.is_read_alias if self.is_read is None else self.is_read


class ThreadsQuery(ThreadQuery, frozen=True):
    inbox_id: InboxFilter | None = field(default=None, name="inboxId")
    pod_id: PodFilter | None = field(default=None, name="podId")


class ThreadChange(Struct, frozen=True):
    is_read: Annotated[bool, Meta(description="false marks it unread.")] | UnsetType = UNSET
    is_read_alias: bool | UnsetType = field(default=UNSET, name="isRead")
    add_labels: NewLabels = field(default_factory=list, name="addLabels")
    remove_labels: NewLabels = field(default_factory=list, name="removeLabels")
    assignee_id: (
        Annotated[str, Meta(description="A user who sees the inbox; null assigns the thread to nobody.")]
        | UnsetType
        | None
    ) = field(default=UNSET, name="assigneeId")
    snoozed_until: (
        Annotated[
            Moment, Meta(description="Sets the thread aside until then; null ends it. So does a reply.")
        ]
        | UnsetType
        | None
    ) = field(default=UNSET, name="snoozedUntil")
    is_done: (
        Annotated[bool, Meta(description="A thread is done until somebody writes to it.")] | UnsetType
    ) = field(default=UNSET, name="isDone")

    expect_reply_by: (
        Annotated[
            ExpectReplyBy, Meta(description="Expects an answer by then; null ends it, with its follow-ups.")
        ]
        | UnsetType
        | None
    ) = field(default=UNSET, name="expectReplyBy")

    legal_hold: (
        Annotated[
            bool,
            Meta(
                description="true: nothing in it is deleted, erased or expired until this is false again."
                " Needs manage."
            ),
        ]
        | UnsetType
    ) = field(default=UNSET, name="legalHold")

    @property
    def is_legal_hold_alone(self) -> bool:
        return self.legal_hold is not UNSET and self == ThreadChange(legal_hold=self.legal_hold)

    @property
    def flag(self) -> bool | None:
        """Return the new read flag, or None if the change leaves it."""
        flag = self.is_read_alias if self.is_read is UNSET else self.is_read
        if flag is not UNSET:
            return flag
        given = (self.assignee_id, self.snoozed_until, self.is_done, self.expect_reply_by, self.legal_hold)
        if not self.add_labels and not self.remove_labels and all(each is UNSET for each in given):
            raise BadRequest(
                "Nothing to change: send is_read, labels, assigneeId, snoozedUntil, isDone, expectReplyBy or"
                " legalHold.",
                field="is_read",
            )
        return None


class ThreadMessageQuery(Struct, frozen=True):
    order: Annotated[Literal["asc", "desc"], Meta(description="desc gives the newest first.")] = "asc"
    limit: Limit = limits.PAGE
    offset: Offset = 0


class Person(Struct, frozen=True):
    name: Annotated[str, Meta(description='"" if none was given.')]
    address: Annotated[str, Meta(description='"" if it cannot be read.')]


class Thread(Struct, rename="camel", frozen=True):
    id: str
    inbox_id: str
    subject: str
    from_: Annotated[Person | None, Meta(description="Of the newest message.")] = field(name="from")
    participants: Annotated[
        list[Person], Meta(max_length=thread_digests.PEOPLE, description="Newest first, without the inbox.")
    ]
    preview: Annotated[
        str,
        Meta(
            max_length=thread_digests.PREVIEW_CHARACTERS,
            description="The beginning of the newest message's reply text, in one line.",
        ),
    ]
    last_direction: thread_digests.Direction | None
    codes: Annotated[list[str], Meta(description="Of the newest message.")]
    verdict: Annotated[
        Verdict | None, Meta(description="The worst of its messages; null if none is examined.")
    ]
    has_attachments: bool
    last_message_at: Timestamp
    is_read: bool
    message_count: int
    created_at: Timestamp
    labels: list[str]
    related_thread_ids: list[str]
    assignee_id: str | None
    snoozed_until: Timestamp | None
    is_done: bool
    awaiting: Awaiting | None
    legal_hold: bool

    @classmethod
    def of(
        cls, thread: threads.Thread, made: ThreadDigest, labels: Sequence[str], related: Sequence[str]
    ) -> Self:
        digest = made.digest
        return cls(
            id=thread.id,
            inbox_id=thread.inbox_id,
            subject=thread.subject,
            from_=Person(*digest.sender) if digest.at else None,
            participants=[Person(*each) for each in digest.people],
            preview=digest.preview,
            last_direction=digest.direction,
            codes=digest.codes,
            verdict=made.verdict,
            has_attachments=digest.has_files,
            last_message_at=to_iso(thread.last_message_at),
            is_read=thread.is_read,
            message_count=thread.message_count,
            created_at=to_iso(thread.created_at),
            labels=list(labels),
            related_thread_ids=list(related),
            assignee_id=thread.assignee_id,
            snoozed_until=iso(thread.snoozed_until),
            is_done=thread.state == DONE,
            awaiting=show_awaiting(thread),
            legal_hold=thread.legal_hold,
        )


class ThreadPage(Struct, rename="camel", frozen=True):
    data: list[Thread]
    total: int


class ChangedThread(Thread, rename="camel", frozen=True):
    ok: bool = True


class ThreadMessages(Struct, rename="camel", frozen=True):
    thread_id: str
    inbox_id: str
    subject: str
    is_read: bool
    data: Annotated[Raw, RawMessages]
    total: int
    related_thread_ids: list[str]
    truncated: Truncated | UnsetType = UNSET
    canary: Annotated[str, Meta(description="What the agent of this inbox reads.")] | UnsetType = UNSET


def list_threads(tx: Tx, caller: Caller, inbox: Inbox, query: ThreadQuery) -> ThreadPage:
    """List the threads of an inbox, newest first"""
    return list_page(tx, caller, inbox.scope, query)


def list_all_threads(tx: Tx, caller: Caller, query: ThreadsQuery) -> ThreadPage:
    """List threads across inboxes, newest first; the total may stop counting 1,000 after the page"""
    scope = inboxes.narrow(tx, caller.scope, query.inbox_id, query.pod_id)
    return ThreadPage([], 0) if scope is None else list_page(tx, caller, scope, query)


def list_page(tx: Tx, caller: Caller, scope: Scope, query: ThreadQuery) -> ThreadPage:
    label = None if query.label is None else labels.fold(query.label)
    work = assignments.wanted(tx, caller, query.assignee, query.state)
    found, total = threads.list_within(tx, scope, query.flag, label, query.limit, query.offset, work)
    return ThreadPage(show_all(tx, found), total)


def show_all(tx: Tx, found: Sequence[threads.Thread]) -> list[Thread]:
    thread_ids = [thread.id for thread in found]
    labelled, others = labels.of_threads(tx, thread_ids), related.list_of_threads(tx, thread_ids)
    digests = thread_digests.of_threads(tx, found)
    return [
        Thread.of(thread, digests[thread.id], labelled.get(thread.id, ()), others.get(thread.id, ()))
        for thread in found
    ]


def get_thread(tx: Tx, caller: Caller, thread_id: str) -> Thread:
    """Get a thread"""
    return show_all(tx, [threads.get(tx, caller.scope, thread_id)])[0]


def change_thread(tx: Tx, caller: Caller, thread_id: str, body: ThreadChange, now: int) -> ChangedThread:
    """Change a thread: read flag, labels, assignee, snoozed, done"""
    if body.legal_hold is not UNSET:
        require_any(caller.permissions, MANAGING)
    if caller.words is None and not body.is_legal_hold_alone:
        require_any(caller.permissions, WRITING)
    thread = threads.get(tx, caller.scope, thread_id)
    if (flag := body.flag) is not None:
        labels.record_read(tx, thread, flag, now)
        thread = threads.mark_read(tx, thread, flag)
        if not flag:
            flags.mark_thread_unread(tx, thread.id)
    changed = labels.change(tx, thread, body.add_labels, body.remove_labels, now)
    thread = assignments.change(tx, caller, thread, body.assignee_id, body.snoozed_until, body.is_done, now)
    if body.expect_reply_by is not UNSET:
        thread = follow_ups.expect_answer(tx, caller, thread, body.expect_reply_by, now)
    if body.legal_hold is not UNSET and body.legal_hold != thread.legal_hold:
        thread = put_hold(tx, caller, thread, body.legal_hold, now)
    digest = thread_digests.of_threads(tx, [thread])[thread.id]
    return ChangedThread.of(thread, digest, changed, related.list_of_thread(tx, thread.id))


def put_hold(tx: Tx, caller: Caller, thread: threads.Thread, is_held: bool, now: int) -> threads.Thread:
    where = legal_holds.hold_thread(tx, caller, thread.inbox_id, thread.id, is_held, now).scope
    before, after = ({"legalHold": each} for each in (not is_held, is_held))
    audit.record_by(tx, caller, "thread.legal_hold", thread.id, now, within=where, before=before, after=after)
    return replace(thread, legal_hold=is_held)


def list_thread_messages(
    tx: Tx, caller: Caller, thread_id: str, query: ThreadMessageQuery, links: Links
) -> ThreadMessages:
    """List the messages of a thread, oldest first by default"""
    thread = threads.get(tx, caller.scope, thread_id)
    found = messages.list_of_thread(tx, thread.id, query.limit, query.offset, query.order)
    shown, is_cut = message_json.to_page(tx, found, links)
    return ThreadMessages(
        thread_id=thread.id,
        inbox_id=thread.inbox_id,
        subject=thread.subject,
        is_read=thread.is_read,
        data=Raw(b"".join((b"[", *shown, b"]"))),
        total=thread.message_count,
        truncated=is_cut or UNSET,
        related_thread_ids=related.list_of_thread(tx, thread.id),
        canary=canaries.find_line(tx, thread.inbox_id),
    )


def delete_some_of_thread(tx: Tx, caller: Caller, thread_id: str, now: int) -> tuple[list[str], bool]:
    """Delete some messages of a thread. Return blobs no longer needed and whether all are deleted."""
    thread = threads.get(tx, caller.scope, thread_id)
    blobs, is_gone = deletion.remove_some_of_thread(tx, caller.scope, thread.id, now)
    if is_gone:
        where = inboxes.get(tx, caller.scope, thread.inbox_id).scope
        before = {"subject": thread.subject}
        audit.record_by(tx, caller, "thread.deleted", thread.id, now, within=where, before=before)
    return blobs, is_gone
