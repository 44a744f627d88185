"""Related threads of one inbox: their emails name Message-IDs that the other thread's emails have or name.

Mail comes out of order, and two people answer an email that never came. Pairs are stored as emails come,
and all counts are limited: a stranger may name any number of ids.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from postroom.storage.database import Row, Tx, all_of, delete, one_of
from postroom_mail.writing.compose import is_message_id

NAMES_PER_MAIL = 40  # the first, where a conversation began, and the last, which are nearest
NAMES_PER_THREAD = 400
THREADS_PER_NAME = 50
RELATED_PER_THREAD = 50
HOLDERS_PER_MAIL = 200
THREAD_IDS_LIMIT = 300


class Placed(Struct, frozen=True):
    """An email in its thread: its own id, and those it names."""

    inbox_id: str
    thread_id: str
    rfc_message_id: str
    names: tuple[str, ...]


def names_of(in_reply_to: Sequence[str], references: Sequence[str]) -> tuple[str, ...]:
    named = tuple(dict.fromkeys((*in_reply_to, *references[:1], *reversed(references[1:]))))
    return named[:NAMES_PER_MAIL]


def record_all(tx: Tx, placed: Sequence[Placed]) -> None:
    """Takes emails that are already stored."""
    pairs = set(_who_named(tx, placed))
    for mail in placed:
        if mail.names:
            pairs.update((mail.thread_id, other) for other in _record_names(tx, mail))
    for one, other in sorted(pairs):
        _relate(tx, one, other)
        _relate(tx, other, one)


def _who_named(tx: Tx, placed: Sequence[Placed]) -> Iterator[tuple[str, str]]:
    """Yield the threads that named an email before it came.

    One query for all, since most emails were named by none.
    """
    rows = tx.many(
        "select inbox_id, rfc_message_id, thread_id from named_ids"
        " where (inbox_id, rfc_message_id) in (values :rows)",
        sorted({(mail.inbox_id, mail.rfc_message_id) for mail in placed if mail.rfc_message_id}),
    )
    by_id: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        by_id.setdefault((row["inbox_id"], row["rfc_message_id"]), []).append(row["thread_id"])
    for mail in placed:
        for other in by_id.get((mail.inbox_id, mail.rfc_message_id), ()):
            if other != mail.thread_id:
                yield mail.thread_id, other


def _record_names(tx: Tx, mail: Placed) -> set[str]:
    """Returns the other threads that have or name what this email names."""
    holders = _holders(tx, mail)
    held_here = {row["rfc_message_id"] for row in holders if row["thread_id"] == mail.thread_id}
    found = {row["thread_id"] for row in holders}
    missing = [name for name in mail.names if name not in held_here]
    if missing:
        namers = _namers(tx, mail.inbox_id, missing)
        found.update(thread_id for threads in namers.values() for thread_id in threads)
        _add_names(tx, mail, [name for name in missing if len(namers.get(name, ())) < THREADS_PER_NAME])
    return found - {mail.thread_id, ""}  # "": mail that was not let in


def _holders(tx: Tx, mail: Placed) -> list[Row]:
    is_named, names = one_of("rfc_message_id", mail.names)
    return tx.all(
        f"select rfc_message_id, thread_id from messages where inbox_id = :inbox_id and {is_named}"
        " limit :limit",
        inbox_id=mail.inbox_id,
        limit=HOLDERS_PER_MAIL,
        **names,
    )


def _namers(tx: Tx, inbox_id: str, names: Sequence[str]) -> dict[str, set[str]]:
    is_named, params = one_of("rfc_message_id", names)
    rows = tx.all(
        f"select rfc_message_id, thread_id from named_ids where inbox_id = :inbox_id and {is_named}",
        inbox_id=inbox_id,
        **params,
    )
    found: dict[str, set[str]] = {}
    for row in rows:
        found.setdefault(row["rfc_message_id"], set()).add(row["thread_id"])
    return found


def _add_names(tx: Tx, mail: Placed, names: Iterable[str]) -> None:
    rows = tx.all(
        "select rfc_message_id from named_ids where thread_id = :thread_id limit :limit",
        thread_id=mail.thread_id,
        limit=NAMES_PER_THREAD,
    )
    room = NAMES_PER_THREAD - len(rows)
    tx.many(
        "insert into named_ids (inbox_id, rfc_message_id, thread_id) values :rows on conflict do nothing",
        [(mail.inbox_id, name, mail.thread_id) for name in names][:room],
    )


def _relate(tx: Tx, thread_id: str, related_id: str) -> None:
    rows = tx.all(
        "select related_id from related_threads where thread_id = :thread_id limit :limit",
        thread_id=thread_id,
        limit=RELATED_PER_THREAD,
    )
    if len(rows) < RELATED_PER_THREAD:
        tx.run(
            "insert into related_threads (thread_id, related_id) values (:thread_id, :related_id)"
            " on conflict do nothing",
            thread_id=thread_id,
            related_id=related_id,
        )


def list_of_threads(tx: Tx, thread_ids: Sequence[str]) -> dict[str, list[str]]:
    """List the related threads of a whole page, oldest first, if they still exist."""
    rows = all_of(
        tx,
        "select related_threads.thread_id, related_id from related_threads"
        " join threads on threads.id = related_id where :wanted"
        " order by related_threads.thread_id, related_id",
        "related_threads.thread_id",
        thread_ids,
    )
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["thread_id"], []).append(row["related_id"])
    return found


def list_of_thread(tx: Tx, thread_id: str) -> list[str]:
    return list_of_threads(tx, [thread_id]).get(thread_id, [])


def forget_threads(tx: Tx, thread_ids: Sequence[str]) -> None:
    is_wanted, wanted = one_of("thread_id", thread_ids)
    tx.run(f"delete from named_ids where {is_wanted}", **wanted)
    for row in tx.all(f"select thread_id, related_id from related_threads where {is_wanted}", **wanted):
        delete(tx, "related_threads", thread_id=row["related_id"], related_id=row["thread_id"])
    tx.run(f"delete from related_threads where {is_wanted}", **wanted)


def rfc_ids_of_thread(tx: Tx, thread_id: str, last: str | None = None) -> dict[str, bool]:
    """Return those that a reply can name, up to `last`, oldest first, and whether each was received.

    Of a very long thread only the first and the newest.
    """
    columns = "rfc_message_id, direction = 'inbound' and is_imported = 0 as is_received"
    newest = tx.all(
        f"select {columns} from messages where thread_id = :thread_id"
        " order by created_at desc, id desc limit :limit",
        thread_id=thread_id,
        limit=THREAD_IDS_LIMIT,
    )
    first = tx.all(
        f"select {columns} from messages where thread_id = :thread_id order by created_at, id limit 1",
        thread_id=thread_id,
    )
    found: dict[str, bool] = {}
    for row in (*first, *reversed(newest)):
        found[row["rfc_message_id"]] = found.get(row["rfc_message_id"], False) or bool(row["is_received"])
    names = list(found)
    until = names.index(last) + 1 if last in found else len(names)
    return {name: found[name] for name in names[:until] if is_message_id(name)}
