"""Messages: one email in one inbox, with its document."""

from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from postroom import ids
from postroom.accounts.scope import Scope
from postroom.errors import no_such
from postroom.mailbox import documents, raw_mails
from postroom.mailbox.documents import Document
from postroom.mailbox.folders import uid_map
from postroom.mailbox.thread_work import DONE
from postroom.storage import pages
from postroom.storage.database import LOCK_ROWS, Row, Tx, all_of, literal, update

INBOUND, OUTBOUND = "inbound", "outbound"
BLOCKED = "blocked"  # in place of the direction: it was received, and not let in
JUNK = "junk"
# In which count of its inbox a message is, unless it is in Trash: the direction, or `junk`.
COUNTED_AS = "case when is_junk = 1 then 'junk' else direction end as counted_as"
TRASH = "trash"
PENDING, SENT, RECEIVED, FAILED = "pending", "sent", "received", "failed"

COLUMNS_BESIDE_DOCUMENT = (
    "messages.id, messages.inbox_id, messages.thread_id, direction, status, has_attachments, has_hold,"
    " is_captured, was_labelled, messages.is_imported, messages.created_at, messages.is_junk,"
    " messages.is_trashed"
)
COLUMNS = f"{COLUMNS_BESIDE_DOCUMENT}, {documents.COLUMNS}"
OUTLINE_COLUMNS = f"{COLUMNS_BESIDE_DOCUMENT}, {documents.LISTED_COLUMNS}"
# Neither blocked ones nor those in Trash; an index has no others.
LISTED = "direction <> 'blocked' and is_trashed = 0"

# The marks of a message; most have none.
FILES, HELD, CAPTURED, BLOCKED_MARK, LABELLED, IMPORTED, JUNK_MARK, TRASHED = 1, 2, 4, 8, 16, 32, 64, 128
_MARKS = (
    f"{FILES} * has_attachments + {HELD} * has_hold + {CAPTURED} * is_captured"
    f" + {LABELLED} * was_labelled + {IMPORTED} * messages.is_imported"
    f" + {JUNK_MARK} * is_junk + {TRASHED} * is_trashed"
    f" + case when direction = 'blocked' and is_junk = 0 then {BLOCKED_MARK} else 0 end as marks"
)


class Message(Struct, frozen=True):
    id: str
    inbox_id: str
    thread_id: str
    status: str
    has_attachments: bool
    has_hold: bool
    is_captured: bool
    stored: documents.Columns
    created_at: int = 0
    is_blocked: bool = False  # it came in, and was not let in
    was_labelled: bool = False
    is_imported: bool = False  # by a mail client or a command; not received here
    is_junk: bool = False  # it is in the Junk folder
    is_trashed: bool = False

    @property
    def marks(self) -> int:
        has_files, is_held = FILES * self.has_attachments, HELD * self.has_hold
        is_stopped, is_labelled = BLOCKED_MARK * self.is_blocked, LABELLED * self.was_labelled
        elsewhere = CAPTURED * self.is_captured + IMPORTED * self.is_imported
        aside = JUNK_MARK * self.is_junk + TRASHED * self.is_trashed
        return has_files + is_held + elsewhere + is_stopped + is_labelled + aside

    @property
    def document(self) -> bytes:
        """The whole document as JSON."""
        return b"".join(documents.pieces(self.stored))

    @classmethod
    def from_row(cls, row: Row, stored: documents.Columns | None = None) -> "Message":
        return cls(
            row["id"],
            row["inbox_id"],
            row["thread_id"],
            row["status"],
            bool(row["has_attachments"]),
            bool(row["has_hold"]),
            bool(row["is_captured"]),
            stored or documents.columns_of(row),
            row["created_at"],
            row["direction"] == BLOCKED and not row["is_junk"],
            bool(row["was_labelled"]),
            bool(row["is_imported"]),
            bool(row["is_junk"]),
            bool(row["is_trashed"]),
        )


class ListedMessage(Struct, frozen=True):
    """What a list shows of a message."""

    id: str
    status: str
    marks: int
    stored: documents.Columns


class Slice(Struct, frozen=True):
    """A page of messages. It is cut if what was asked for did not fit."""

    messages: list[ListedMessage]
    is_cut: bool


class NewMessage(Struct, frozen=True):
    """A message to be stored, with its raw mail or the blob that holds it."""

    document: Document
    status: str
    from_address: str
    has_attachments: bool
    raw: bytes | None
    blob: str | None
    created_at: int
    size_bytes: int
    trace_bytes: int = 0  # of our own trace field, which is before the email as it came
    text_at: int | None = None  # where in `raw` the text belongs, which is cut out there
    html_at: int | None = None
    has_hold: bool = False
    key_id: str | None = None  # the key that sent it
    budget_id: str | None = None  # the key for whose budget it counts
    is_blocked: bool = False
    envelope: bytes | None = None  # as IMAP writes it; None: made when a program asks
    is_imported: bool = False


def add_all(tx: Tx, new: Sequence[NewMessage]) -> None:
    written = [documents.to_written(message.document) for message in new]
    rows = [(*_to_row(message), *columns) for message, columns in zip(new, written, strict=True)]
    tx.many(
        "insert into messages (id, inbox_id, thread_id, direction, status, rfc_message_id, from_address,"
        f" has_attachments, created_at, has_hold, key_id, budget_id, is_imported,"
        f" {documents.WRITTEN_COLUMNS}) values :rows",
        rows,
    )
    tx.many(
        f"insert into raw_mails (message_id, {raw_mails.WRITTEN_COLUMNS}, blob, trace_bytes, text_at,"
        " html_at, size_bytes, envelope) values :rows",
        [
            (
                each.document.id,
                *raw_mails.to_written(each.raw),
                each.blob,
                each.trace_bytes,
                each.text_at,
                each.html_at,
                each.size_bytes,
                each.envelope,
            )
            for each in new
        ],
    )
    documents.add_outlines(tx, list(zip([each.document for each in new], written, strict=True)))
    uid_map.add_all(tx, [row[:4] for row in rows])


def _to_row(new: NewMessage) -> tuple[Any, ...]:
    document = new.document
    return (
        document.id,
        document.inbox_id,
        document.thread_id,
        BLOCKED if new.is_blocked else document.direction,
        new.status,
        document.rfc_message_id,
        new.from_address,
        int(new.has_attachments),
        new.created_at,
        int(new.has_hold),
        new.key_id,
        new.budget_id,
        int(new.is_imported),
    )


def set_document(tx: Tx, document: Document) -> None:
    columns = ("document", "reply_at", "reply_bytes", "document_bytes", "kept_category")
    written = documents.to_written(document)
    update(tx, "messages", document.id, **dict(zip(columns, written, strict=True)))
    documents.replace_outline(tx, document, written)


def let_in(tx: Tx, document: Document, came_at: int) -> None:
    set_document(tx, document)
    thread_id = document.thread_id
    update(tx, "messages", document.id, direction=INBOUND, is_junk=0, thread_id=thread_id, created_at=came_at)


def move_to_junk(tx: Tx, document: Document) -> None:
    """Takes it out of its thread. The caller counts."""
    set_document(tx, document)
    update(tx, "messages", document.id, direction=BLOCKED, is_junk=1, thread_id="")


def find(tx: Tx, message_id: str) -> Message | None:
    row = tx.one(f"select {COLUMNS} from messages where id = :id", id=message_id)
    return None if row is None else Message.from_row(row)


def list_by_ids(tx: Tx, message_ids: Sequence[str]) -> list[Message]:
    """Return those that exist, in the given order."""
    rows = all_of(tx, f"select {COLUMNS} from messages where :wanted", "id", message_ids)
    found = {row["id"]: Message.from_row(row) for row in rows}
    return [found[message_id] for message_id in message_ids if message_id in found]


def list_outlines(tx: Tx, message_ids: Sequence[str]) -> list[Message]:
    """List the messages as lists show them: a large document as its outline."""
    rows = all_of(tx, f"select {OUTLINE_COLUMNS} from messages where :wanted", "messages.id", message_ids)
    found = {row["id"]: Message.from_row(row, documents.outline_columns(tx, row)) for row in rows}
    return [found[message_id] for message_id in message_ids if message_id in found]


def find_outbound(tx: Tx, inbox_id: str, rfc_message_id: str, since: int) -> Message | None:
    """Return an email sent from here, by Message-ID."""
    row = tx.one(
        f"select {COLUMNS} from messages where inbox_id = :inbox_id and rfc_message_id = :rfc_message_id"
        " and direction = 'outbound' and is_imported = 0 and created_at >= :since limit 1",
        inbox_id=inbox_id,
        rfc_message_id=rfc_message_id,
        since=since,
    )
    return None if row is None else Message.from_row(row)


def find_sent_within(tx: Tx, scope: Scope, rfc_message_id: str, since: int) -> Message | None:
    """Find by Message-ID, in any inbox in scope."""
    if not rfc_message_id:
        return None
    column, owner = scope.owner_of_inboxes
    row = tx.one(
        f"select {COLUMNS} from messages where inbox_id in (select id from inboxes where {column} = :owner)"
        " and rfc_message_id = :rfc_message_id and direction = 'outbound' and is_imported = 0"
        " and created_at >= :since limit 1",
        owner=owner,
        rfc_message_id=rfc_message_id,
        since=since,
    )
    return None if row is None else Message.from_row(row)


def get(tx: Tx, scope: Scope, message_id: str) -> Message:
    return Message.from_row(_row_within(tx, scope, message_id, COLUMNS))


def get_outline(tx: Tx, scope: Scope, message_id: str) -> Message:
    row = _row_within(tx, scope, message_id, OUTLINE_COLUMNS)
    return Message.from_row(row, documents.outline_columns(tx, row))


def _row_within(tx: Tx, scope: Scope, message_id: str, columns: str) -> Row:
    row = ids.is_id(ids.MESSAGE, message_id) and tx.one(
        f"select {columns}, inboxes.account_id, inboxes.pod_id from messages"
        " join inboxes on inboxes.id = messages.inbox_id where messages.id = :id",
        id=message_id,
    )
    if not row or not scope.covers(row["account_id"], row["pod_id"], row["inbox_id"]):
        raise no_such("message")
    return row


def find_last(tx: Tx, thread_id: str, direction: str | None = None) -> Document | None:
    """Return the newest message of a thread, or the newest in one direction."""
    filtered = "" if direction is None else f" and direction = {literal(direction)}"
    row = tx.one(
        f"select {documents.COLUMNS} from messages where thread_id = :thread_id{filtered}"
        " order by created_at desc, id desc limit 1",
        thread_id=thread_id,
    )
    return None if row is None else documents.decode(documents.from_row(row))


def list_last(tx: Tx, thread_ids: Sequence[str]) -> dict[str, Message]:
    """Return the newest message of each thread; a large one as its outline."""
    rows = all_of(
        tx,
        f"select {OUTLINE_COLUMNS} from messages where messages.id in (select (select newest.id"
        " from messages as newest where newest.thread_id = threads.id and newest.is_trashed = 0"
        " order by newest.created_at desc, newest.id desc limit 1) from threads where :wanted)",
        "threads.id",
        thread_ids,
    )
    return {row["thread_id"]: Message.from_row(row, documents.outline_columns(tx, row)) for row in rows}


def lock(tx: Tx, message_id: str) -> None:
    """Makes changes to the message and its recipients wait until the transaction ends.

    Else two last recipients could finish at the same time, and neither would see that all are done.
    """
    tx.one(f"select 1 as found from messages where id = :id {LOCK_ROWS}", id=message_id)


def find_direction(tx: Tx, message_id: str) -> str:
    row = tx.one("select direction from messages where id = :id", id=message_id)
    return "" if row is None else str(row["direction"])


def list_archived(tx: Tx, message_ids: Sequence[str]) -> frozenset[str]:
    """Return those whose thread is done."""
    rows = all_of(
        tx,
        "select messages.id from messages join threads on threads.id = messages.thread_id"
        f" where threads.state = {DONE} and :wanted",
        "messages.id",
        message_ids,
    )
    return frozenset(row["id"] for row in rows)


def set_status(tx: Tx, message_id: str, status: str) -> bool:
    """Return False if the message has this status already."""
    changed = tx.run(
        "update messages set status = :status where id = :id and status <> :status",
        status=status,
        id=message_id,
    )
    return changed == 1


def mark_captured(tx: Tx, message_id: str) -> None:
    tx.run("update messages set is_captured = 1 where id = :id", id=message_id)


def require_visible(tx: Tx, message_id: str) -> None:
    """Require the message to exist, for links without an account.

    It is visible until its inbox is deleted.
    """
    found = ids.is_id(ids.MESSAGE, message_id) and tx.one(
        "select 1 as found from messages join inboxes on inboxes.id = messages.inbox_id"
        " where messages.id = :id",
        id=message_id,
    )
    if not found:
        raise no_such("message")


def list_of_thread(
    tx: Tx, thread_id: str, limit: int, offset: int, order: Literal["asc", "desc"] = "asc"
) -> Slice:
    rows = tx.tuples(
        f"select {listed_columns(limit)} from messages where thread_id = :thread_id and is_trashed = 0"
        f" order by created_at {order}, id {order} limit :limit offset :offset",
        thread_id=thread_id,
        limit=limit,
        offset=offset,
    )
    return fitting(tx, rows)


def listed_columns(limit: int) -> str:
    return f"{pages.content('document', documents.SIZE, limit)}, reply_at, reply_bytes, id, status, {_MARKS}"


def fitting(tx: Tx, rows: Sequence[tuple[Any, ...]]) -> Slice:
    """Takes rows of the columns that `listed_columns` names."""
    fitting = pages.fitting([row[1] for row in rows])
    found = [
        ListedMessage(id, status, marks, _columns(tx, id, stored, at, length))
        for stored, _, at, length, id, status, marks, *_ in rows[:fitting]
    ]
    return Slice(found, is_cut=fitting < len(rows))


def _columns(
    tx: Tx, message_id: str, stored: bytes | None, reply_at: int | None, reply_bytes: int | None
) -> documents.Columns:
    """Return the columns of a document. A large one is read separately from its row."""
    if stored is not None:
        return documents.plain(stored), reply_at, reply_bytes
    row = tx.one(f"select {documents.COLUMNS} from messages where id = :id", id=message_id)
    assert row is not None
    return documents.columns_of(row)
