"""Participants: the addresses that wrote or were addressed in a thread."""

from collections.abc import Iterable

from postroom.storage.database import Tx


def add_all(tx: Tx, found: Iterable[tuple[str, str]]) -> None:
    """Stores pairs of thread and address."""
    tx.many(
        "insert into participants (thread_id, address) values :rows on conflict do nothing",
        sorted(set(found)),
    )


def is_one(tx: Tx, thread_id: str, address: str) -> bool:
    found = tx.one(
        "select 1 as found from participants where thread_id = :thread_id and address = :address",
        thread_id=thread_id,
        address=address,
    )
    return found is not None
