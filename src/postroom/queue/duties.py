"""Duties: work of the whole house that one node does at a time; a node that died holds none for long."""

from postroom.storage.database import Tx


def take(tx: Tx, name: str, holder: str, until: int, now: int) -> bool:
    """Whether the holder has the duty now, taken or kept until a moment."""
    taken = tx.run(
        "insert into duties (name, holder, held_until) values (:name, :holder, :until)"
        " on conflict (name) do update set holder = excluded.holder, held_until = excluded.held_until"
        " where duties.holder = excluded.holder or duties.held_until <= :now",
        name=name,
        holder=holder,
        until=until,
        now=now,
    )
    return taken == 1


def leave(tx: Tx, name: str, holder: str) -> None:
    tx.run("delete from duties where name = :name and holder = :holder", name=name, holder=holder)
