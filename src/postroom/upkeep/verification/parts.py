"""A part of a verification: it checks page by page, and may repair what is derived from other rows."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from postroom.resources import Resources, Tx

PAGE_SECONDS = 60.0


class Finding(Struct, frozen=True):
    """Something that is wrong. `is_derived`: it can be made again from other data."""

    part: str
    id: str
    what: str
    is_derived: bool = False


class Page(Struct, frozen=True):
    """What was found, how many were checked, and where the next page begins; None: nothing is left."""

    findings: list[Finding]
    looked_at: int
    after: str | None


class StoredPart(Struct, frozen=True):
    """`count` returns how much there is to check. `repair` is one transaction for the findings of a page."""

    name: str
    count: Callable[[Tx], int]
    look: Callable[[Resources, str], Awaitable[Page]]
    repair: Callable[[Tx, Sequence[str]], None] | None = None


def of_rows(
    name: str,
    table: str,
    look: Callable[[Tx, str], Page],
    repair: Callable[[Tx, Sequence[str]], None] | None = None,
) -> StoredPart:
    """Return a part that needs only the database: each page is one consistent read."""

    async def look_at_page(resources: Resources, after: str) -> Page:
        return await resources.db.read_long(look, PAGE_SECONDS, after)

    return StoredPart(name, lambda tx: count_rows(tx, table), look_at_page, repair)


def count_rows(tx: Tx, table: str) -> int:
    row = tx.one(f"select count(*) as total from {table}")
    return int(row["total"]) if row else 0


def next_ids(tx: Tx, table: str, key: str, after: str, limit: int) -> tuple[list[str], str | None]:
    """Return a page of keys, and where the next one begins."""
    rows = tx.all(
        f"select {key} as key from {table} where {key} > :after order by {key} limit :limit",
        after=after,
        limit=limit,
    )
    found = [row["key"] for row in rows]
    return found, found[-1] if len(found) == limit else None
