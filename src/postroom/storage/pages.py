"""Pages with a bound in bytes: large contents end a page early, and the next page begins with them."""

from collections.abc import Iterator, Sequence

from postroom.storage.database import Row

PAGE_BYTES = 4 * 1024 * 1024
SIZE = "content_bytes"


def content(column: str, limit: int) -> str:
    """For the list of columns: small contents come with their row, of large ones only the size."""
    inline_bytes = PAGE_BYTES // max(limit, 1)
    return (
        f"case when length({column}) <= {inline_bytes:d} then {column} end as {column},"
        f" length({column}) as {SIZE}"
    )


def fitting(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows whose contents fit into a page; at least one."""
    given = 0
    for row in rows:
        given += row[SIZE]
        if PAGE_BYTES < given != row[SIZE]:
            return
        yield row
