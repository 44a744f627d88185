"""Duties: work of all nodes that one of them does at a time; a node that died holds none for long."""

from msgspec import Struct

from postroom.storage.database import Tx


class LeaderLease(Struct, frozen=True):
    name: str
    holder: str  # a node
    held_until: int


FIRST_SECONDS = 5.0  # before a node takes a duty: the start has other things to do
NODE = "node "  # before the id of a node: its presence is stored as a duty too


def list_held(tx: Tx, now: int, limit: int) -> list[LeaderLease]:
    """Duties held now; the holders are live nodes."""
    rows = tx.all(
        "select name, holder, held_until from duties where held_until > :now order by name limit :limit",
        now=now,
        limit=limit,
    )
    return [LeaderLease(row["name"], row["holder"], row["held_until"]) for row in rows]


def show_presence(tx: Tx, node: str, where: str, until: int, now: int) -> None:
    """Announces where a node runs, valid until a moment. Dead nodes are removed."""
    tx.run("delete from duties where name like :nodes and held_until <= :now", nodes=f"{NODE}%", now=now)
    take(tx, NODE + node, where, until, now)


def take(tx: Tx, name: str, holder: str, until: int, now: int) -> bool:
    """Return whether the holder has the duty now, taken or kept until a moment."""
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
