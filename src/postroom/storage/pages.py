"""Pages of a list, bounded in bytes: large contents end a page early, and the next page starts with them."""

from collections.abc import Sequence

from postroom.fields import Span
from postroom.storage.database import Row, Tx

PAGE_BYTES = 4 * 1024 * 1024
SIZE = "content_bytes"


def content(column: str, size: str, limit: int) -> str:
    """For the columns of a select: small contents come with their row, of large ones only the size."""
    inline_bytes = PAGE_BYTES // max(limit, 1)
    return f"case when {size} <= {inline_bytes:d} then {column} end as {column}, {size} as {SIZE}"


def fitting(sizes: Sequence[int]) -> int:
    """How many contents of these sizes fit into a page; at least one."""
    given = 0
    for number, size in enumerate(sizes):
        given += size
        if PAGE_BYTES < given != size:
            return number
    return len(sizes)


def rows_of(
    tx: Tx, source: str, span: Span, at: str = "created_at", id: str = "id", **params: object
) -> list[Row]:
    """`source` ends in its conditions; `at` and `id` are the columns that it is ordered by."""
    order, beyond = ("", ">") if span.is_ascending else (" desc", "<")
    conditions, bound = "", dict(params)
    if span.behind is not None:
        conditions += f" and ({at}, {id}) {beyond} (:behind_at, :behind_id)"
        bound |= {"behind_at": span.behind.at, "behind_id": span.behind.id}
    if span.since is not None:
        conditions += f" and {at} > :since"
        bound["since"] = span.since
    if span.until is not None:
        conditions += f" and {at} < :until"
        bound["until"] = span.until
    return tx.all(
        f"{source}{conditions} order by {at}{order}, {id}{order} limit :span_limit",
        span_limit=span.limit,
        **bound,
    )
