"""A part of the messages of a thread, as pages show it: no more is read of a message than a line shows."""

from postroom.mailbox import documents
from postroom.mailbox.messages import OUTLINE_COLUMNS, Message
from postroom.storage.database import Tx


def list_outlines(tx: Tx, thread_id: str, limit: int, offset: int) -> list[Message]:
    """Return the newest messages of a thread, newest first; of a large one its outline."""
    rows = tx.all(
        f"select {OUTLINE_COLUMNS} from messages where thread_id = :thread_id and is_trashed = 0"
        " order by created_at desc, id desc limit :limit offset :offset",
        thread_id=thread_id,
        limit=limit,
        offset=offset,
    )
    return [Message.from_row(row, documents.outline_columns(tx, row)) for row in rows]


def count_newer(tx: Tx, thread_id: str, message_id: str) -> int:
    """Return how many messages of the thread are newer than this one; 0 if it is not in the thread."""
    row = tx.one(
        "select count(*) as newer from messages where thread_id = :thread_id and is_trashed = 0"
        " and (created_at, id) >"
        " (select created_at, id from messages where id = :id and thread_id = :thread_id)",
        thread_id=thread_id,
        id=message_id,
    )
    return 0 if row is None else int(row["newer"])
