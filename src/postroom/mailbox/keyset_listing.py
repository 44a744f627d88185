"""Lists messages and threads by labels and dates; each page begins after the one before."""

from collections.abc import Sequence

from msgspec import Struct

from postroom.accounts.scope import Scope
from postroom.fields import Cursor, Span
from postroom.mailbox import thread_selects
from postroom.mailbox.inboxes import IS_THERE, Inbox
from postroom.mailbox.labels import IS_UNREAD
from postroom.mailbox.messages import LISTED
from postroom.mailbox.thread_selects import IS_LISTED
from postroom.mailbox.thread_work import ANY_WORK
from postroom.mailbox.threads import SEEN, Thread
from postroom.storage import pages
from postroom.storage.database import Tx, all_of, literal

NOT_JUDGED_YET = "exists (select 1 from examinations where message_id = messages.id)"


class Wanted(Struct, frozen=True):
    """Conditions on messages of an inbox; all must hold."""

    labels: tuple[str, ...] = ()  # in the form in which they are compared
    direction: str | None = None
    is_unread: bool = False
    with_blocked: bool = False
    with_junk: bool = False
    is_trashed: bool | None = False  # None: whether it is in Trash or not


class ThreadFacts(Struct, frozen=True):
    """Facts about a thread, from its messages."""

    size_bytes: int = 0
    received_at: int | None = None
    sent_at: int | None = None


def list_messages(tx: Tx, inbox_id: str, wanted: Wanted, span: Span) -> list[Cursor]:
    tables, conditions = ["messages"], ["messages.inbox_id = :inbox_id"]
    params: dict[str, object] = {"inbox_id": inbox_id}
    for number, label in enumerate(wanted.labels):
        name = f"label_{number}"
        tables.insert(0, f"message_labels as {name}")
        conditions.append(f"{name}.inbox_id = :inbox_id and {name}.label = :{name}")
        conditions.append(f"{name}.message_id = messages.id")
        params[name] = label
    if wanted.is_unread:
        tables.insert(0, "threads")
        conditions.append(f"threads.inbox_id = :inbox_id and {IS_UNREAD}")
        params["seen"] = SEEN
    if wanted.direction is not None:
        conditions.append(f"direction = {literal(wanted.direction)}")
    allowed = ["direction <> 'blocked'"]
    if wanted.with_blocked:
        allowed.append(f"(is_junk = 0 and not {NOT_JUDGED_YET})")
    if wanted.with_junk:
        allowed.append("is_junk = 1")
    conditions.append(f"({' or '.join(allowed)})")
    if wanted.is_trashed is not None:
        conditions.append(f"is_trashed = {int(wanted.is_trashed)}")
    source = (
        "select messages.id, messages.created_at"
        f" from {' cross join '.join(tables)} where {' and '.join(conditions)}"
    )
    rows = pages.rows_of(tx, source, span, "messages.created_at", "messages.id", **params)
    return [Cursor(row["created_at"], row["id"]) for row in rows]


def list_of_thread(tx: Tx, thread: Thread, span: Span) -> list[Cursor]:
    source = f"select id, created_at from messages where thread_id = :thread_id and {_shown_of(thread)}"
    rows = pages.rows_of(tx, source, span, thread_id=thread.id)
    return [Cursor(row["created_at"], row["id"]) for row in rows]


def _shown_of(thread: Thread) -> str:
    """Excludes messages in Trash, unless all are there."""
    return LISTED if thread.message_count else "is_trashed = 1"


def list_threads(
    tx: Tx,
    scope: Scope,
    labels: Sequence[str],
    is_trashed: bool | None,
    is_read: bool | None,
    span: Span,
) -> list[Thread]:
    """List threads by their last message. Labels are folded; None means any."""
    column, owner_id = scope.owner
    conditions = [f"threads.{column} = :owner_id", f"threads.{IS_THERE}"]
    tables, params = ["threads"], {"owner_id": owner_id, **_limits_of(scope)}
    conditions += [f"threads.{name} = :{name}" for name in _limits_of(scope)]
    for number, label in enumerate(labels):
        name = f"label_{number}"
        tables.insert(0, f"labels as {name}")
        conditions.append(f"{name}.{column} = :owner_id and {name}.label = :{name}")
        conditions.append(f"{name}.thread_id = threads.id")
        params[name] = label
    if is_trashed is not None:
        conditions.append(f"threads.{IS_LISTED}" if not is_trashed else f"not threads.{IS_LISTED}")
    if labels and is_read is not None:
        conditions.append("threads.is_read = :is_read")
        params["is_read"] = int(is_read)
    source = f"select threads.* from {' cross join '.join(tables)} where {' and '.join(conditions)}"
    parts = [""] if labels or (column == "inbox_id" and is_read is None) else _parts(is_read)
    rows = [
        row
        for part in parts
        for row in pages.rows_of(tx, source + part, span, "threads.last_message_at", "threads.id", **params)
    ]
    if len(parts) > 1:
        rows.sort(key=lambda row: (row["last_message_at"], row["id"]), reverse=not span.is_ascending)
    return [Thread.from_row(row) for row in rows[: span.limit]]


def _parts(is_read: bool | None) -> list[str]:
    """Return conditions for parts of an index, each in the order of the list."""
    flags, states = thread_selects.flags_of(is_read), thread_selects.states_of(ANY_WORK)
    return [
        f" and threads.is_read = {flag} and threads.state = {state}" for flag in flags for state in states
    ]


def _limits_of(scope: Scope) -> dict[str, object]:
    """Return the scope as query parameters.

    A scope of one inbox may be within a pod, and is always within an account.
    """
    pod = {} if scope.pod_id is None else {"pod_id": scope.pod_id}
    return {"account_id": scope.account_id, **pod}


def newest_of_threads(tx: Tx, found_threads: Sequence[Thread], each: int) -> dict[str, list[str]]:
    """Return the ids of the `each` newest messages of each thread."""
    found = {}
    for thread in found_threads:
        rows = tx.all(
            f"select id from messages where thread_id = :id and {_shown_of(thread)}"
            " order by created_at desc, id desc limit :each",
            id=thread.id,
            each=each,
        )
        found[thread.id] = [row["id"] for row in rows]
    return found


def facts_of_threads(tx: Tx, thread_ids: Sequence[str]) -> dict[str, ThreadFacts]:
    rows = all_of(
        tx,
        "select thread_id, direction, sum(size_bytes) as bytes, max(created_at) as last_at"
        " from messages join raw_mails on raw_mails.message_id = messages.id where :wanted"
        " group by thread_id, direction",
        "messages.thread_id",
        thread_ids,
    )
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for row in rows:
        found.setdefault(row["thread_id"], {})[row["direction"]] = int(row["bytes"]), int(row["last_at"])
    return {thread_id: _to_facts(of_direction) for thread_id, of_direction in found.items()}


def _to_facts(of_direction: dict[str, tuple[int, int]]) -> ThreadFacts:
    received, sent = of_direction.get("inbound"), of_direction.get("outbound")
    return ThreadFacts(
        size_bytes=sum(size for size, _ in of_direction.values()),
        received_at=None if received is None else received[1],
        sent_at=None if sent is None else sent[1],
    )


# --- inboxes, and messages by the names that their senders gave them


def list_inboxes(tx: Tx, scope: Scope, span: Span) -> list[Inbox]:
    column, owner = scope.owner_of_inboxes
    in_pod = "" if scope.pod_id is None else " and pod_id = :pod_id"
    rows = pages.rows_of(
        tx,
        f"select * from inboxes where account_id = :account_id and {column} = :owner{in_pod}",
        span,
        account_id=scope.account_id,
        owner=owner,
        **({} if scope.pod_id is None else {"pod_id": scope.pod_id}),
    )
    return [Inbox.from_row(row) for row in rows]


def totals(tx: Tx, scope: Scope) -> dict[str, int]:
    """Return the totals of all inboxes in scope."""
    column, owner = scope.owner_of_inboxes
    row = tx.one(
        "select count(*) as inboxes, sum(thread_count) as threads,"
        " sum(inbound_count + outbound_count) as messages from inboxes"
        f" where account_id = :account_id and {column} = :owner",
        account_id=scope.account_id,
        owner=owner,
    )
    assert row is not None
    return {
        "message_count": int(row["messages"] or 0),
        "thread_count": int(row["threads"] or 0),
        "inbox_count": int(row["inboxes"]),
    }


def find_by_rfc_id(tx: Tx, inbox_id: str, rfc_message_id: str) -> str | None:
    """Return the id of the first message of an inbox with this Message-ID."""
    if not rfc_message_id:
        return None
    row = tx.one(
        "select id from messages where inbox_id = :inbox_id and rfc_message_id = :rfc_message_id"
        " order by id limit 1",
        inbox_id=inbox_id,
        rfc_message_id=rfc_message_id,
    )
    return None if row is None else str(row["id"])


def find_trashed(tx: Tx, message_ids: Sequence[str]) -> set[str]:
    return {
        row["id"]
        for row in all_of(tx, "select id from messages where :wanted and is_trashed = 1", "id", message_ids)
    }


def ids_of_thread(tx: Tx, thread_id: str) -> list[str]:
    return [row["id"] for row in tx.all("select id from messages where thread_id = :id", id=thread_id)]


def find_later_doubles(tx: Tx, message_ids: Sequence[str]) -> set[str]:
    """Return those messages whose Message-ID an earlier message of the same inbox has."""
    rows = all_of(
        tx,
        "select messages.id from messages where :wanted and exists (select 1 from messages as earlier"
        " where earlier.inbox_id = messages.inbox_id and earlier.rfc_message_id = messages.rfc_message_id"
        " and earlier.id < messages.id)",
        "messages.id",
        message_ids,
    )
    return {row["id"] for row in rows}


def find_inbox_by_client_id(tx: Tx, pod_id: str, client_id: str) -> Inbox | None:
    row = tx.one(
        "select * from inboxes where pod_id = :pod_id and client_id = :client_id",
        pod_id=pod_id,
        client_id=client_id,
    )
    return None if row is None else Inbox.from_row(row)
