"""Threads: messages of one inbox that belong together, with a read flag."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.errors import no_such
from postroom.mailbox import contacts, thread_selects
from postroom.mailbox.documents import Verdict
from postroom.mailbox.folders import flags, uid_map
from postroom.mailbox.inboxes import IS_THERE, Inbox
from postroom.mailbox.thread_selects import HIDDEN, IS_LISTED, NEWEST_FIRST
from postroom.mailbox.thread_work import ANY_WORK, OPEN, Work
from postroom.storage.database import LOCK_ROWS, Row, Tx, all_of, one_of

COUNTED_BEYOND_PAGE = 1000
SEEN = uid_map.READ_ALONE
VERDICTS: tuple[Verdict | None, ...] = (None, "clean", "suspicious", "malicious")  # by `threads.verdict`
OF_A_THREAD = ("participants", "notes", "contact_threads", "follow_ups")
# The time of the newest of all its messages, including those in Trash.
_NEWEST = (
    "(select coalesce(max(created_at), threads.last_message_at) from messages"
    " where thread_id = threads.id and created_at > threads.last_message_at)"
)
OF_INBOXES_THAT_ARE_THERE = (
    "select threads.* from threads join inboxes on inboxes.id = threads.inbox_id where threads.id = :id"
)


class Thread(Struct, frozen=True):
    id: str
    inbox_id: str
    subject: str
    is_read: bool
    message_count: int
    last_message_at: int
    created_at: int
    account_id: str
    pod_id: str
    is_imported: bool = False  # it holds imported mail alone
    digest: bytes | None = None  # what lists show of it (`thread_digests`); None: it is made anew
    verdict: int = 0  # the worst of its messages, as in VERDICTS
    state: int = OPEN
    snoozed_until: int | None = None
    assignee_id: str | None = None
    awaiting_since: int | None = None  # set: an answer is expected (`follow_ups`)
    awaiting_until: int | None = None
    awaiting_from: str | None = None
    awaiting_message: str | None = None
    is_overdue: bool = False
    legal_hold: bool = False

    @classmethod
    def from_row(cls, row: Row) -> "Thread":
        return cls(
            row["id"],
            row["inbox_id"],
            row["subject"],
            bool(row["is_read"]),
            row["message_count"],
            row["last_message_at"],
            row["created_at"],
            row["account_id"],
            row["pod_id"],
            bool(row["is_imported"]),
            None if row["digest"] is None else bytes(row["digest"]),
            row["verdict"],
            row["state"],
            row["snoozed_until"],
            row["assignee_id"],
            row["awaiting_since"],
            row["awaiting_until"],
            row["awaiting_from"],
            row["awaiting_message"],
            bool(row["is_overdue"]),
            bool(row["legal_hold"]),
        )


def new(
    inbox: Inbox,
    subject: str,
    is_read: bool,
    now: int,
    is_imported: bool = False,
    digest: bytes | None = None,
) -> Thread:
    """Return a thread of one message that is not stored yet."""
    thread_id = ids.new(ids.THREAD, now)
    owner = inbox.account_id, inbox.pod_id
    return Thread(thread_id, inbox.id, subject, is_read, 1, now, now, *owner, is_imported, digest)


def add_all(tx: Tx, started: Sequence[Thread]) -> None:
    """Add the threads. The caller counts them in their inboxes."""
    tx.many(
        "insert into threads (id, inbox_id, subject, is_read, message_count, last_message_at, created_at,"
        " account_id, pod_id, is_imported, is_risky, verdict, digest) values :rows",
        [
            (
                thread.id,
                thread.inbox_id,
                thread.subject,
                int(thread.is_read),
                thread.message_count,
                thread.last_message_at,
                thread.created_at,
                thread.account_id,
                thread.pod_id,
                int(thread.is_imported),
                int(thread.verdict > VERDICTS.index("clean")),
                thread.verdict,
                thread.digest,
            )
            for thread in started
        ],
    )


def take_away(tx: Tx, thread_id: str, count: int) -> None:
    """Counts deleted messages; removes a thread without any."""
    count_listed(tx, thread_id, -count)
    if is_empty(tx, thread_id):
        contacts.forget_thread(tx, thread_id)
        for table in OF_A_THREAD:
            tx.run(f"delete from {table} where thread_id = :id", id=thread_id)
        tx.run("delete from threads where id = :id", id=thread_id)


def count_listed(tx: Tx, thread_id: str, by: int) -> None:
    """Counts messages that are now shown or hidden. A thread that shows none is in no list."""
    row = tx.one(
        "update threads set digest = null, message_count = message_count + :by, last_message_at = coalesce("
        "(select max(created_at) from messages where thread_id = :id and is_trashed = 0), :hidden)"
        " where id = :id returning inbox_id, is_read, message_count, last_message_at",
        by=by,
        id=thread_id,
        hidden=HIDDEN,
    )
    if row is None:
        return
    tx.run(
        "update labels set last_message_at = :last where thread_id = :id",
        last=row["last_message_at"],
        id=thread_id,
    )
    was_listed, is_listed = row["message_count"] - by > 0, row["message_count"] > 0
    if was_listed != is_listed:
        _count_thread(tx, row, 1 if is_listed else -1)


def _count_thread(tx: Tx, row: Row, by: int) -> None:
    tx.run(
        "update inboxes set thread_count = thread_count + :by, unread_count = unread_count + :unread"
        " where id = :inbox_id",
        by=by,
        unread=by * (1 - row["is_read"]),
        inbox_id=row["inbox_id"],
    )


def is_empty(tx: Tx, thread_id: str) -> bool:
    return tx.one("select 1 as found from messages where thread_id = :id limit 1", id=thread_id) is None


def add_message(
    tx: Tx, thread: Thread, is_read: bool, now: int, is_imported: bool = False, digest: bytes | None = None
) -> Thread:
    """Counts one more message and sets the read flag according to it.

    `digest` is the one of `thread` with the message; if another was stored meanwhile, it is made anew.
    """
    known = {} if thread.digest is None or digest is None else {"before": thread.digest, "digest": digest}
    row = tx.one(
        "update threads set message_count = message_count + 1, last_message_at ="
        " case when last_message_at < :now then :now else last_message_at end,"
        " is_imported = is_imported * :is_imported, digest ="
        + (" case when digest = :before then :digest end" if known else " null")
        + " where id = :id returning inbox_id, is_read, message_count, state, awaiting_until",
        now=now,
        id=thread.id,
        is_imported=int(is_imported),
        **known,
    )
    if row is not None:
        thread = replace(thread, state=row["state"], awaiting_until=row["awaiting_until"])
        if row["message_count"] == 1:  # all others are in Trash
            _count_thread(tx, row, 1)
    tx.run(
        "update labels set last_message_at = :now where thread_id = :id and last_message_at < :now",
        now=now,
        id=thread.id,
    )
    if not is_read:  # if two come at the same moment, neither counts as read
        tx.run(
            "update threads set read_through = :now - 1 where id = :id and read_through >= :now",
            now=now,
            id=thread.id,
        )
    return _set_read(tx, replace(thread, digest=digest), is_read)


def lock(tx: Tx, thread_id: str) -> None:
    """Makes changes to one thread wait for each other."""
    tx.one(f"select 1 as found from threads where id = :id {LOCK_ROWS}", id=thread_id)


def mark_read(tx: Tx, thread: Thread, is_read: bool) -> Thread:
    """Marks the thread and all its messages."""
    if not is_read:
        tx.run("update threads set read_through = 0 where id = :id", id=thread.id)
        tx.run("delete from message_labels where thread_id = :id and label = :seen", id=thread.id, seen=SEEN)
    return _set_read(tx, thread, is_read)


def mark_all_read(tx: Tx, inbox_id: str, thread_ids: Sequence[str]) -> None:
    """Marks many threads of one inbox, with all their messages."""
    if not thread_ids:
        return
    is_wanted, wanted = one_of("id", sorted(set(thread_ids)))
    rows = tx.all(
        f"update threads set is_read = 1, read_through = {_NEWEST}"
        f" where is_read = 0 and {is_wanted} returning id",
        **wanted,
    )
    if rows:
        tx.run(
            "update inboxes set unread_count = unread_count - :count where id = :inbox_id",
            count=len(rows),
            inbox_id=inbox_id,
        )
        flags.mark_threads_read(tx, [row["id"] for row in rows])


def mark_unread(tx: Tx, thread: Thread) -> Thread:
    """Mark a thread unread because of one of its messages; the others stay unchanged."""
    return _set_read(tx, thread, is_read=False)


def _set_read(tx: Tx, thread: Thread, is_read: bool) -> Thread:
    changed = tx.one(
        "update threads set is_read = :is_read,"
        f" read_through = case when :is_read = 1 then {_NEWEST} else read_through end"
        " where id = :id and is_read <> :is_read returning message_count",
        is_read=int(is_read),
        id=thread.id,
    )
    if changed is not None:
        if changed["message_count"] > 0:
            tx.run(
                "update inboxes set unread_count = unread_count + :by where id = :inbox_id",
                by=-1 if is_read else 1,
                inbox_id=thread.inbox_id,
            )
        if is_read:
            flags.mark_thread_read(tx, thread.id)
    return replace(thread, is_read=is_read)


def find(tx: Tx, thread_id: str) -> Thread | None:
    row = tx.one("select * from threads where id = :id", id=thread_id)
    return None if row is None else Thread.from_row(row)


def get(tx: Tx, scope: Scope, thread_id: str) -> Thread:
    row = ids.is_id(ids.THREAD, thread_id) and tx.one(OF_INBOXES_THAT_ARE_THERE, id=thread_id)
    if not row or not scope.covers(row["account_id"], row["pod_id"], row["inbox_id"]):
        raise no_such("thread")
    return Thread.from_row(row)


def list_by_ids(tx: Tx, scope: Scope, thread_ids: Sequence[str]) -> list[Thread]:
    """Return those in scope, in the given order."""
    rows = all_of(tx, f"select * from threads where :wanted and {IS_THERE}", "id", thread_ids)
    found = {
        row["id"]: Thread.from_row(row)
        for row in rows
        if scope.covers(row["account_id"], row["pod_id"], row["inbox_id"])
    }
    return [found[thread_id] for thread_id in thread_ids if thread_id in found]


def list_of_inbox(
    tx: Tx, inbox_id: str, is_read: bool | None, limit: int, offset: int
) -> tuple[list[Thread], int]:
    if is_read is not None:
        found = thread_selects.with_work("inbox_id", is_read, thread_selects.KEYS, ANY_WORK)
        return _page(tx, found, limit, offset, owner_id=inbox_id), _total(tx, inbox_id, is_read)
    rows = tx.all(
        f"select * from threads where inbox_id = :inbox_id and {IS_LISTED}"
        f" {NEWEST_FIRST} limit :limit offset :offset",
        inbox_id=inbox_id,
        limit=limit,
        offset=offset,
    )
    return [Thread.from_row(row) for row in rows], _total(tx, inbox_id, is_read)


def _page(tx: Tx, found: str, limit: int, offset: int, **params: object) -> list[Thread]:
    """Return the page of a list in parts.

    The parts are merged by their keys alone: reading whole rows would be expensive.
    """
    found = thread_selects.with_first_page(found, limit, offset)
    rows = tx.all(
        f"select threads.* from (select * from ({found}) as parts {NEWEST_FIRST}"
        " limit :limit offset :offset) as found cross join threads where threads.id = found.id",
        shown=offset + limit,
        limit=limit,
        offset=offset,
        **params,
    )
    rows.sort(key=lambda row: (row["last_message_at"], row["id"]), reverse=True)
    return [Thread.from_row(row) for row in rows]


def _total(tx: Tx, inbox_id: str, is_read: bool | None) -> int:
    row = tx.one("select thread_count, unread_count from inboxes where id = :id", id=inbox_id)
    if row is None:
        return 0
    totals = {
        None: row["thread_count"],
        False: row["unread_count"],
        True: row["thread_count"] - row["unread_count"],
    }
    return int(totals[is_read])


def list_within(
    tx: Tx,
    scope: Scope,
    is_read: bool | None,
    label: str | None,
    limit: int,
    offset: int,
    work: Work = ANY_WORK,
) -> tuple[list[Thread], int]:
    """List threads, newest first, across inboxes or with a folded label.

    The total is counted up to a limit.
    """
    if scope.inbox_id is not None and label is None and work == ANY_WORK:
        return list_of_inbox(tx, scope.inbox_id, is_read, limit, offset)
    owner, owner_id = scope.owner

    def of(columns: str) -> str:
        if label is not None:
            return thread_selects.with_label(f"labels.{owner}", is_read, columns, work)
        if work.awaiting is not None:
            return thread_selects.with_answer_expected(owner, is_read, columns, work)
        return thread_selects.with_work(owner, is_read, columns, work)

    params: dict[str, object] = {"owner_id": owner_id}
    params |= {} if label is None else {"label": label}
    params |= {} if is_read is None else {"is_read": int(is_read)}
    params |= {} if work.state is None or label is None else {"state": work.state}
    params |= {"assignee": work.assignee_id} if work.assignee_id else {}
    found = _page(tx, of(thread_selects.KEYS), limit, offset, **params)
    params["shown"] = offset + limit + COUNTED_BEYOND_PAGE
    counting = thread_selects.with_first_page(of("1 as one"), limit + COUNTED_BEYOND_PAGE, offset)
    counted = tx.one(f"select count(*) as total from ({counting}) as found", **params)
    return found, int(counted["total"]) if counted else 0


def is_risky(tx: Tx, thread_id: str) -> bool:
    """Return whether one of its messages was judged other than clean."""
    row = tx.one("select is_risky from threads where id = :id", id=thread_id)
    return row is not None and bool(row["is_risky"])


def risk_of(tx: Tx, thread_id: str) -> int:
    """Return 0 for a clean thread, 1 for a suspicious one, and 2 for a malicious one."""
    row = tx.one("select is_risky, verdict from threads where id = :id", id=thread_id)
    return 0 if row is None else max(row["is_risky"], row["verdict"] - VERDICTS.index("clean"), 0)


def record_verdict(tx: Tx, thread_id: str, verdict: Verdict | None) -> None:
    """Keeps the worst verdict. A thread that once had a message judged other than clean stays risky."""
    if verdict is not None:
        tx.run(
            "update threads set verdict = :rank, is_risky = case when :rank > 1 then 1 else is_risky end"
            " where id = :id and verdict < :rank",
            id=thread_id,
            rank=VERDICTS.index(verdict),
        )


def forget_digest(tx: Tx, thread_id: str) -> None:
    """Remove the digest: it is rebuilt because a message of the thread has changed."""
    tx.run("update threads set digest = null where id = :id", id=thread_id)
