"""Correspondents: who wrote to an inbox, under which name, and whether a genuine mail proves it."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from postroom.storage.database import Tx, all_of, one_of

KNOWN_LIMIT = 300
NO_JUNK, FOUND_JUNK, CALLED_JUNK = 0, 1, 2  # of an address: by the filter, by a person
NAMESAKES_LIMIT = 10


class KnownSince(Struct, frozen=True):
    """Since when an address writes to an inbox, and is verified; None: before this was recorded, or never."""

    first_at: int | None
    verified_at: int | None
    junk: int = NO_JUNK


def add(tx: Tx, found: Iterable[tuple[str, str, bool]], now: int) -> set[tuple[str, str]]:
    """Takes inbox, address, and whether the email is genuine.

    Returns the pairs whose address is new to the inbox, or genuine for the first time.
    """
    rows = tx.many(
        "insert into correspondents (inbox_id, address, is_trusted, first_at) values :rows"
        " on conflict (inbox_id, address) do update set is_trusted = 1"
        " where excluded.is_trusted = 1 and correspondents.is_trusted = 0 returning inbox_id, address",
        [(*pair, trusted, now) for pair, trusted in sorted(_most_trusted(found).items())],
    )
    return {(row["inbox_id"], row["address"]) for row in rows}


def _most_trusted(found: Iterable[tuple[str, str, bool]]) -> dict[tuple[str, str], int]:
    return {(inbox_id, address): int(trusted) for inbox_id, address, trusted in sorted(found)}


def list_known(tx: Tx, inbox_id: str, addresses: Sequence[str]) -> dict[str, KnownSince]:
    """Return what an inbox knows of these addresses."""
    rows = all_of(
        tx,
        "select address, first_at, verified_at, junk from correspondents"
        " where inbox_id = :inbox_id and :wanted",
        "address",
        addresses,
        inbox_id=inbox_id,
    )
    return {row["address"]: KnownSince(row["first_at"], row["verified_at"], row["junk"]) for row in rows}


def mark_verified(tx: Tx, inbox_id: str, address: str, now: int) -> None:
    """Record that an email from this address has passed DMARC."""
    tx.run(
        "update correspondents set verified_at = :now"
        " where inbox_id = :inbox_id and address = :address and verified_at is null",
        inbox_id=inbox_id,
        address=address,
        now=now,
    )


def find_junk(tx: Tx, inbox_id: str, address: str) -> None:
    """Record that the junk filter found an email from this address to be junk."""
    tx.run(
        "update correspondents set junk = :found"
        " where inbox_id = :inbox_id and address = :address and junk = 0",
        found=FOUND_JUNK,
        inbox_id=inbox_id,
        address=address,
    )


def call_junk(tx: Tx, inbox_id: str, addresses: Sequence[str], now: int) -> None:
    """Record that a person called emails from these addresses junk.

    This does not make the addresses known.
    """
    tx.many(
        "insert into correspondents (inbox_id, address, is_trusted, first_at, junk) values :rows"
        " on conflict (inbox_id, address) do update set junk = excluded.junk",
        [(inbox_id, address, 0, now, CALLED_JUNK) for address in sorted(set(addresses))],
    )


def call_wanted(tx: Tx, inbox_id: str, addresses: Sequence[str]) -> None:
    """Record that a person called emails from these addresses wanted: remove their junk marks."""
    if not addresses:
        return
    is_wanted, wanted = one_of("address", sorted(set(addresses)))
    tx.run(
        f"update correspondents set junk = 0 where inbox_id = :inbox_id and junk > 0 and {is_wanted}",
        inbox_id=inbox_id,
        **wanted,
    )


def record_name(tx: Tx, inbox_id: str, address: str, name: str, is_proven: bool) -> None:
    """Record the name of a correspondent. The first one with it keeps it; another must be proven.

    Names are folded; '' means none, or taken by another.
    """
    taken = not is_proven and find_namesakes(tx, inbox_id, name)
    tx.run(
        "update correspondents set name = :name where inbox_id = :inbox_id and address = :address"
        " and is_trusted = 1 and (name is null or (name = '' and :is_proven = 1))",
        inbox_id=inbox_id,
        address=address,
        name="" if taken else name,
        is_proven=int(is_proven),
    )


def find_namesakes(tx: Tx, inbox_id: str, name: str) -> list[str]:
    """Return the addresses of trusted correspondents with this name, up to a limit."""
    if not name:
        return []
    rows = tx.all(
        "select address from correspondents where inbox_id = :inbox_id and name = :name and is_trusted = 1"
        " and name <> '' order by address limit :limit",
        inbox_id=inbox_id,
        name=name,
        limit=NAMESAKES_LIMIT,
    )
    return [row["address"] for row in rows]


def list_trusted(tx: Tx, inbox_id: str, name: str, besides: str = "") -> tuple[str, ...]:
    """Return those with the name, and some others, except `besides`: enough to notice a lookalike.

    Those with the name are listed with it.
    """
    namesakes = [f"{name} <{address}>" for address in find_namesakes(tx, inbox_id, name)]
    rows = tx.all(
        "select address from correspondents where inbox_id = :inbox_id and is_trusted = 1"
        " and address <> :besides order by address limit :limit",
        inbox_id=inbox_id,
        besides=besides,
        limit=KNOWN_LIMIT - len(namesakes),
    )
    return (*namesakes, *(row["address"] for row in rows))


def find(tx: Tx, asked: Sequence[tuple[str, str]], only_trusted: bool = False) -> set[tuple[str, str]]:
    """Returns those pairs of inbox and address whose address has written to the inbox.

    A trusted address has written at least one email that did not fail DMARC.
    """
    trusted = " and is_trusted = 1" if only_trusted else ""
    rows = tx.many(
        "select inbox_id, address from (values :rows) as asked cross join correspondents"
        f" where inbox_id = asked.column1 and address = asked.column2{trusted}",
        asked,
    )
    return {(row["inbox_id"], row["address"]) for row in rows}
