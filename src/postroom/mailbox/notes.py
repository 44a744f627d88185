"""Internal notes on threads: read in the dashboard and the API, never sent, quoted, searched or exported."""

from collections.abc import Sequence

from msgspec import Struct

from postroom import ids
from postroom.accounts import actors
from postroom.accounts.actors import Actor
from postroom.errors import BadRequest, no_such
from postroom.limits import NOTES_OF_A_THREAD
from postroom.mailbox import threads
from postroom.mailbox.threads import Thread
from postroom.storage.database import Row, Tx, all_of, count, insert_item, item_from_row


class Note(Struct, frozen=True):
    id: str
    thread_id: str
    author: Actor
    created_at: int
    body: str

    @classmethod
    def from_row(cls, row: Row) -> "Note":
        return item_from_row(cls, row, author=actors.decode(row["author"]))


def add(tx: Tx, thread: Thread, author: Actor, body: str, now: int) -> Note:
    threads.lock(tx, thread.id)
    if count_of(tx, thread.id) >= NOTES_OF_A_THREAD:
        raise BadRequest(f"A thread has at most {NOTES_OF_A_THREAD} notes. Delete one first.", field="body")
    note = Note(
        id=ids.new(ids.NOTE, now),
        thread_id=thread.id,
        author=author,
        created_at=now,
        body=body,
    )
    insert_item(tx, "notes", note, author=actors.encode(author))
    return note


def count_of(tx: Tx, thread_id: str) -> int:
    return count(tx, "select count(*) as number from notes where thread_id = :id", id=thread_id)


def list_of_thread(tx: Tx, thread_id: str, limit: int, offset: int = 0) -> list[Note]:
    """List the notes of a thread, oldest first."""
    rows = tx.all(
        "select * from notes where thread_id = :id order by created_at, id limit :limit offset :offset",
        id=thread_id,
        limit=limit,
        offset=offset,
    )
    return [Note.from_row(row) for row in rows]


def list_newest(tx: Tx, thread_ids: Sequence[str], limit: int) -> list[Note]:
    """List the newest notes on any of these threads, newest first."""
    rows = all_of(
        tx,
        "select * from notes where :wanted order by created_at desc, id desc limit :limit",
        "thread_id",
        thread_ids,
        limit=limit,
    )
    return [Note.from_row(row) for row in rows]


def get(tx: Tx, thread: Thread, note_id: str) -> Note:
    row = ids.is_id(ids.NOTE, note_id) and tx.one(
        "select * from notes where id = :id and thread_id = :thread_id", id=note_id, thread_id=thread.id
    )
    if not row:
        raise no_such("note")
    return Note.from_row(row)


def remove(tx: Tx, note: Note) -> None:
    tx.run("delete from notes where id = :id", id=note.id)
