"""Index entries made late, whose number does not show when their mail came."""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from postroom import ids
from postroom.mailbox.search.batch import Batch
from postroom.storage.database import Tx, all_of, one_of


class Latecomer(NamedTuple):
    arrived_at: int
    doc: int


def record(tx: Tx, batch: Batch, docs: Mapping[str, int], known: Collection[str]) -> None:
    """Record mail let in after it was indexed, which counts from that moment.

    `docs` by message, in order of arrival.
    """
    newest = _newest(tx, sorted({batch.arrivals[message_id].account_id for message_id in docs}))
    late = []
    for message_id, doc in docs.items():
        account_id, arrived_at = batch.arrivals[message_id]
        if batch.is_of_earlier_mail or message_id in known:
            is_late = arrived_at > ids.moment_of(message_id)
        else:
            is_late = arrived_at < newest.get(account_id, 0)
        if is_late:
            late.append((doc, account_id, arrived_at))
        else:
            newest[account_id] = max(newest.get(account_id, 0), arrived_at)
    tx.many(
        "insert into search_latecomers (doc, account_id, arrived_at) values :rows"
        " on conflict (doc) do update set arrived_at = excluded.arrived_at",
        late,
    )
    tx.many(
        "insert into search_newest (account_id, newest_at) values :rows"
        " on conflict (account_id) do update set newest_at = excluded.newest_at",
        sorted(newest.items()),
    )


def _newest(tx: Tx, account_ids: Sequence[str]) -> dict[str, int]:
    rows = all_of(
        tx, "select account_id, newest_at from search_newest where :wanted", "account_id", account_ids
    )
    return {row["account_id"]: int(row["newest_at"]) for row in rows}


def forget(tx: Tx, docs: Sequence[int]) -> None:
    is_wanted, wanted = one_of("doc", docs)
    tx.run(f"delete from search_latecomers where {is_wanted}", **wanted)


def find(tx: Tx, doc: int) -> Latecomer | None:
    row = tx.one("select arrived_at, doc from search_latecomers where doc = :doc", doc=doc)
    return None if row is None else Latecomer(row["arrived_at"], row["doc"])


def list_between(tx: Tx, account_id: str, above: int, below: Latecomer) -> list[Latecomer]:
    """Return those of an account that came after one moment and before another; newest first."""
    rows = tx.all(
        "select arrived_at, doc from search_latecomers where account_id = :account_id"
        " and arrived_at > :above and (arrived_at < :at or (arrived_at = :at and doc < :doc))"
        " order by arrived_at desc, doc desc",
        account_id=account_id,
        above=above,
        at=below.arrived_at,
        doc=below.doc,
    )
    return [Latecomer(row["arrived_at"], row["doc"]) for row in rows]
