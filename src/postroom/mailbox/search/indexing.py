"""Keeps the search index up to date with the messages, after their commit and in whole batches.

Storing, changing or removing a message enqueues it in the same transaction. Mail from before the index, or
before its tokens changed, is indexed once, newest first, while nothing newer waits.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import takewhile
from typing import Any

from msgspec import Struct

from postroom import ids, log
from postroom.clock import SECOND
from postroom.errors import Unavailable
from postroom.mailbox import messages
from postroom.mailbox.search import contents, latecomers, removals
from postroom.mailbox.search.batch import AccountMoment, Batch
from postroom.storage.database import IndexStore, Row, Tx, all_of, one_of
from postroom_mail.search import tokens
from postroom_mail.search.index_entry import IndexEntry

LOOK_SECONDS = 60.0
LEASE = 5 * SECOND
BATCH, BATCH_APART = 200, 1_000  # the larger the batch, the less is written
BATCH_CHARACTERS = 5_000_000
STORED_AT_ONCE = 16
COUNTED_WAITING = 10_000
BEHIND_ALL = f"{ids.MESSAGE}_g"  # sorts after every possible id
REALM_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
EMPTY: dict[str, Any] = {
    "name": "index",
    "version": 0,
    "cursor": "",
    "first_doc": 1,
    "last_doc": 0,
    "last_realm": 0,
    "earlier_count": 0,
    "earlier_done": 0,
    "holder": "",
    "held_until": 0,
    "reached": 0,
}


def enqueue_all(tx: Tx, message_ids: Iterable[str]) -> None:
    """Called in the transaction that stores, changes or removes these."""
    tx.many(
        "insert into search_changes (message_id) values :rows",
        [(message_id,) for message_id in sorted(set(message_ids))],
    )


def realm_of(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, len(REALM_DIGITS))
        digits = REALM_DIGITS[digit] + digits
    return digits


class IndexStep(IntEnum):
    """What a step did; after PART more work is known to wait."""

    NOTHING = 0
    SOME = 1
    PART = 2


async def step(db: IndexStore, holder: str, now: int) -> IndexStep:
    if not await db.read(has_work, holder, now):
        return IndexStep.NOTHING
    if await db.read(_is_new):  # no connection for long reads is needed where there is nothing to read
        return IndexStep(await db.write_index(begin_anew, 0, holder, now))
    batch = await db.read_long(prepare, LOOK_SECONDS)
    if batch is None:
        total = await db.read_long(_count_messages, LOOK_SECONDS)
        return IndexStep(await db.write_index(begin_anew, total, holder, now))
    if batch.new_pods:
        await db.write_index(add_realms, batch.new_pods)
        return IndexStep.PART
    is_busy = False
    for part in batch.parts(stored_at_once(batch)):
        is_busy = await store_whole_or_one_by_one(db, part, holder, now)
    return IndexStep.PART if is_busy and batch.is_part else IndexStep(is_busy)


def stored_at_once(batch: Batch) -> int:
    """Return how many entries to store at once: few if incoming mail waits for the same writer."""
    return BATCH_APART if batch.is_apart else STORED_AT_ONCE


def batch_size(tx: Tx) -> int:
    return BATCH_APART if tx.fulltext.is_apart else BATCH


async def store_whole_or_one_by_one(db: IndexStore, batch: Batch, holder: str, now: int) -> bool:
    """Store a batch, or its entries one by one if it is refused, a refused one without its words."""
    try:
        return await db.write_index(store, batch, holder, now)
    except Unavailable:
        raise
    except Exception:
        log.get().exception("a batch of the search index was refused")
    for part in batch.one_by_one():
        try:
            await db.write_index(store, part, holder, now)
        except Unavailable:
            raise
        except Exception:
            log.get().exception("a message cannot be indexed", message=min(part.entries))
            await db.write_index(store, part.without_words(), holder, now)
    return True


def has_work(tx: Tx, holder: str, now: int) -> bool:
    state = _state(tx)
    if state["holder"] != holder and state["held_until"] > now:
        return False
    if state["version"] != tokens.VERSION or state["cursor"]:
        return True
    return bool(_changes(tx, state, 1))


def has_full_batch(tx: Tx) -> bool:
    """Return whether a full batch waits: each batch writes the same index pages again."""
    size = batch_size(tx)
    return not is_whole(tx) or len(_changes(tx, _state(tx), size)) == size


def has_at_least(tx: Tx, count: int) -> bool:
    """Return whether so many changes wait, or so much earlier email that is not indexed yet."""
    state = _state(tx)
    earlier = state["earlier_count"] - state["earlier_done"] if state["cursor"] else 0
    return earlier >= count or len(_changes(tx, state, count)) == count


def _state(tx: Tx) -> Row:
    """Return the state. After a crash of PostgreSQL the whole index is empty, including this row."""
    return tx.one("select * from search_state where name = 'index'") or EMPTY


def prepare(tx: Tx) -> Batch | None:
    """Reads the next changes and makes their entries. None: all mail has to be indexed again."""
    state = _state(tx)
    if state["version"] != tokens.VERSION:
        return None
    changes = _changes(tx, state, batch_size(tx))
    if changes:
        entries, new_pods, arrivals = _make_entries(tx, list(dict(changes)))
        made = list(takewhile(lambda change: change[0] in entries, changes))
        is_apart = tx.fulltext.is_apart
        removed = removals.make_entries(tx, made) if is_apart else {}
        is_part = len(made) < len(changes)
        return Batch(
            made,
            entries,
            new_pods,
            arrivals=arrivals,
            is_apart=is_apart,
            is_part=is_part,
            removed=removed,
        )
    earlier = tx.all(
        "select id from messages where id < :cursor order by id desc limit :limit",
        cursor=state["cursor"],
        limit=batch_size(tx),
    )
    return _prepare_earlier(tx, [row["id"] for row in earlier])


def _changes(tx: Tx, state: Row, limit: int) -> list[tuple[str, int]]:
    """Return the messages and the numbers of their changes, ordered by number."""
    rows = tx.all(
        "select message_id, number from search_changes where number > :reached order by number limit :limit",
        reached=state["reached"],
        limit=limit,
    )
    return [(row["message_id"], int(row["number"])) for row in rows]


def _prepare_earlier(tx: Tx, message_ids: Sequence[str]) -> Batch:
    """Prepare earlier messages, newest first. Mail that came meanwhile is already in the index."""
    known = _find_documents(tx, message_ids)
    wanted = [message_id for message_id in message_ids if not _is_current(known, message_id)]
    entries, new_pods, arrivals = _make_entries(tx, wanted)
    cursor = min(message_ids, default="") if len(entries) == len(wanted) else min(entries, default="")
    passed = sum(message_id >= cursor for message_id in message_ids)
    return Batch([], entries, new_pods, cursor, passed, arrivals)


def _make_entries(
    tx: Tx, message_ids: Sequence[str]
) -> tuple[dict[str, IndexEntry | None], dict[str, str], dict[str, AccountMoment]]:
    """Stops when the entries together are large; makes at least one."""
    entries: dict[str, IndexEntry | None] = {}
    new_pods: dict[str, str] = {}
    arrivals: dict[str, AccountMoment] = {}
    size = 0
    for message_id, row in _rows(tx, message_ids):
        if size > BATCH_CHARACTERS:
            break
        if row is None:
            entries[message_id] = None
        elif row["number"] is None:
            new_pods[row["pod_id"]] = row["account_id"]
        else:
            mail, scopes = contents.read_with_scopes(tx, row)
            size += len(mail.text) + sum(map(len, mail.file_texts))
            entries[message_id] = contents.to_entry(mail, realm_of(row["number"]), scopes)
            arrivals[message_id] = AccountMoment(row["account_id"], row["created_at"])
    return entries, new_pods, arrivals


def _rows(tx: Tx, message_ids: Sequence[str]) -> Iterator[tuple[str, Row | None]]:
    """Yield the rows of messages in the given order; None for deleted ones."""
    for part in contents.in_parts(message_ids):
        is_wanted, wanted = one_of("messages.id", part)
        rows = tx.all(
            f"select {messages.COLUMNS}, messages.direction, inboxes.pod_id, inboxes.account_id, number"
            " from messages join inboxes on inboxes.id = messages.inbox_id"
            f" left join search_realms on search_realms.pod_id = inboxes.pod_id where {is_wanted}",
            **wanted,
        )
        found = {row["id"]: row for row in rows}
        yield from ((message_id, found.get(message_id)) for message_id in part)


def _hold(tx: Tx, holder: str, now: int) -> Row | None:
    """Takes the lease of the index, and locks it until the commit. None: another node holds it."""
    return tx.one(
        "update search_state set holder = :holder, held_until = :until"
        " where name = 'index' and (holder = :holder or held_until <= :now) returning *",
        holder=holder,
        until=now + LEASE,
        now=now,
    )


def _is_new(tx: Tx) -> bool:
    """Return whether there is no mail yet."""
    return _state(tx)["version"] == 0 and tx.one("select 1 as found from messages limit 1") is None


def _count_messages(tx: Tx) -> int:
    row = tx.one("select count(*) as total from messages")
    return 0 if row is None else int(row["total"])


def begin_anew(tx: Tx, total: int, holder: str, now: int) -> bool:
    """Begin a new index after new tokens, or with an empty one: every message gets a new entry."""
    tx.many(
        f"insert into search_state ({', '.join(EMPTY)}) values :rows on conflict (name) do nothing",
        [tuple(EMPTY.values())],
    )
    if _hold(tx, holder, now) is None:
        return False
    tx.run(
        "update search_state set version = :version, cursor = :cursor, earlier_count = :total,"
        " earlier_done = 0 where name = 'index'",
        version=tokens.VERSION,
        cursor=BEHIND_ALL if total else "",
        total=total,
    )
    return True


def add_realms(tx: Tx, new_pods: dict[str, str]) -> None:
    for pod_id, account_id in sorted(new_pods.items()):
        row = tx.one(
            "update search_state set last_realm = last_realm + 1 where name = 'index' returning last_realm"
        )
        assert row is not None
        tx.run(
            "insert into search_realms (pod_id, account_id, number) values (:pod_id, :account_id, :number)"
            " on conflict (pod_id) do nothing",
            pod_id=pod_id,
            account_id=account_id,
            number=row["last_realm"],
        )


def store(tx: Tx, batch: Batch, holder: str, now: int) -> bool:
    """Stores entries, their documents and the progress in one transaction."""
    state = _hold(tx, holder, now)
    if state is None:
        return False
    known = _find_documents(tx, list(batch.entries))
    _remove(tx, batch, known)
    made = {
        message_id: entry
        for message_id, entry in batch.entries.items()
        if entry is not None and not (batch.is_of_earlier_mail and _is_current(known, message_id))
    }
    in_order = sorted(made, key=lambda message_id: (batch.arrivals[message_id].at, message_id))
    docs = _number(tx, state, batch, in_order, known)
    tx.fulltext.put_all([(docs[message_id], entry) for message_id, entry in made.items()])
    _record_documents(tx, docs, made)
    latecomers.record(tx, batch, docs, known)
    _record_done(tx, batch)
    return True


def _find_documents(tx: Tx, message_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the number and version of those in the index."""
    rows = all_of(
        tx, "select doc, message_id, version from search_documents where :wanted", "message_id", message_ids
    )
    return {row["message_id"]: (row["doc"], row["version"]) for row in rows}


def _is_current(known: dict[str, tuple[int, int]], message_id: str) -> bool:
    return message_id in known and known[message_id][1] == tokens.VERSION


def _remove(tx: Tx, batch: Batch, known: dict[str, tuple[int, int]]) -> None:
    """Removes entries, and their rows of `search_documents`."""
    gone: dict[str, IndexEntry | None] = {
        message_id: None for message_id, entry in batch.entries.items() if entry is None
    }
    for message_id, number in reversed(batch.changes):  # the first of several has the entry that was put
        if number in batch.removed:
            gone[message_id] = batch.removed[number]
    docs = {known.pop(message_id)[0]: entry for message_id, entry in gone.items() if message_id in known}
    if docs:
        tx.fulltext.remove_all(docs)
        is_wanted, wanted = one_of("doc", list(docs))
        tx.run(f"delete from search_documents where {is_wanted}", **wanted)
        latecomers.forget(tx, list(docs))


def _number(
    tx: Tx, state: Row, batch: Batch, made: Sequence[str], known: dict[str, tuple[int, int]]
) -> dict[str, int]:
    """Number the documents. Indexed ones keep theirs; new mail gets higher ones, earlier lower ones."""
    new = [message_id for message_id in made if message_id not in known]
    first = state["first_doc"] - len(new) if batch.is_of_earlier_mail else state["last_doc"] + 1
    column, value = ("first_doc", first) if batch.is_of_earlier_mail else ("last_doc", first + len(new) - 1)
    tx.run(f"update search_state set {column} = :value where name = 'index'", value=value)
    numbered = {message_id: first + place for place, message_id in enumerate(new)}
    return {
        message_id: known[message_id][0] if message_id in known else numbered[message_id]
        for message_id in made
    }


def _record_documents(tx: Tx, docs: dict[str, int], made: dict[str, IndexEntry]) -> None:
    tx.many(
        "insert into search_documents (doc, message_id, version, realm) values :rows"
        " on conflict (doc) do update set version = excluded.version, realm = excluded.realm",
        [(doc, message_id, tokens.VERSION, made[message_id].realm) for message_id, doc in docs.items()],
    )


def _record_done(tx: Tx, batch: Batch) -> None:
    numbers = [number for _, number in batch.changes]
    if numbers and tx.fulltext.is_apart:
        sql = "update search_state set reached = :reached where name = 'index' and reached < :reached"
        tx.run(sql, reached=numbers[-1])
    elif numbers:
        is_wanted, wanted = one_of("number", numbers)
        tx.run(f"delete from search_changes where {is_wanted}", **wanted)
    if batch.is_of_earlier_mail:
        tx.run(
            "update search_state set cursor = :cursor, earlier_done = earlier_done + :count"
            " where name = 'index'",
            cursor=batch.cursor,
            count=batch.passed,
        )


def is_whole(tx: Tx) -> bool:
    """Return whether all mail is indexed in the current version, except what has just come."""
    state = _state(tx)
    return state["version"] == tokens.VERSION and not state["cursor"]


class Progress(Struct, frozen=True):
    waiting: int  # messages of now, counted up to a limit
    earlier_percent: int  # of the earlier email that is indexed again


def progress(tx: Tx) -> Progress:
    state = _state(tx)
    row = tx.one(
        "select count(*) as waiting from"
        " (select 1 from search_changes where number > :reached limit :limit) as counted",
        reached=state["reached"],
        limit=COUNTED_WAITING,
    )
    waiting = int(row["waiting"]) if row else 0
    if state["version"] != tokens.VERSION:
        return Progress(waiting, 0)
    if not state["cursor"]:
        return Progress(waiting, 100)
    return Progress(waiting, min(99, 100 * state["earlier_done"] // max(1, state["earlier_count"])))
