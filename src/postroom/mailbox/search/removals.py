"""For an index that stores no texts: keeps what an entry was made of until it is removed from the index."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from postroom.mailbox import messages
from postroom.mailbox.search import contents
from postroom.storage.database import Row, Tx, one_of
from postroom_mail.search.index_entry import IndexEntry, Searchable


def enqueue_removed(tx: Tx, message_ids: Iterable[str]) -> None:
    """Call before messages are removed or re-indexed: an index without texts needs their old words."""
    changes = tx.many(
        "insert into search_changes (message_id) values :rows returning message_id, number",
        [(message_id,) for message_id in sorted(set(message_ids))],
    )
    if tx.fulltext.is_apart:
        numbers = {row["message_id"]: row["number"] for row in changes}
        for part in contents.in_parts(list(numbers)):
            is_wanted, wanted = one_of("id", part)
            rows = tx.all(f"select {messages.COLUMNS}, direction from messages where {is_wanted}", **wanted)
            removed = [(numbers[row["id"]], _Removed.of(tx, row)) for row in rows]
            tx.many(
                "insert into search_removals (number, mail) values :rows",
                [(number, msgspec.msgpack.encode(each)) for number, each in removed],
            )


class _Removed(Struct, frozen=True):
    """What an entry is made of, except the realm, which the index knows."""

    mail: Searchable
    scopes: list[str]

    @classmethod
    def of(cls, tx: Tx, row: Row) -> "_Removed":
        return cls(*contents.read_with_scopes(tx, row))


def make_entries(tx: Tx, changes: Sequence[tuple[str, int]]) -> dict[int, IndexEntry]:
    """Return the entries to remove, by the number of their change."""
    if not changes:
        return {}
    removals = tx.tuples(
        "select number, mail from search_removals where number between :first and :last",
        first=changes[0][1],
        last=changes[-1][1],
    )
    message_ids = {number: message_id for message_id, number in changes}
    realms = _find_realms(tx, [message_ids[number] for number, _ in removals])
    entries = {}
    for number, packed in removals:
        if (realm := realms.get(message_ids[number])) is not None:
            removed = msgspec.msgpack.decode(packed, type=_Removed)
            entries[number] = contents.to_entry(removed.mail, realm, removed.scopes)
    return entries


def _find_realms(tx: Tx, message_ids: Sequence[str]) -> dict[str, str]:
    if not message_ids:
        return {}
    is_wanted, wanted = one_of("message_id", message_ids)
    return dict(tx.tuples(f"select message_id, realm from search_documents where {is_wanted}", **wanted))
