"""Pages of a list, bounded in bytes: large contents end a page early, and the next page starts with them."""

from collections.abc import Sequence

PAGE_BYTES = 4 * 1024 * 1024
SIZE = "content_bytes"


def content(column: str, limit: int) -> str:
    """For the columns of a select: small contents come with their row, of large ones only the size."""
    inline_bytes = PAGE_BYTES // max(limit, 1)
    return (
        f"case when length({column}) <= {inline_bytes:d} then {column} end as {column},"
        f" length({column}) as {SIZE}"
    )


def fitting(sizes: Sequence[int]) -> int:
    """How many contents of these sizes fit into a page; at least one."""
    given = 0
    for number, size in enumerate(sizes):
        given += size
        if PAGE_BYTES < given != size:
            return number
    return len(sizes)
