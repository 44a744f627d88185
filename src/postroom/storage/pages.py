"""Pages of a list, limited in bytes: large contents end a page early, and the next page starts with them."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from postroom.fields import Span
from postroom.limits import PAGE_BYTES
from postroom.storage.database import Row, Tx, all_of, count

T = TypeVar("T")

SIZE = "content_bytes"
COUNTED_BEYOND_PAGE = 1000


def content(column: str, size: str, limit: int) -> str:
    """Return columns of a select: small contents come with their row, large ones only with their size."""
    inline_bytes = PAGE_BYTES // max(limit, 1)
    return f"case when {size} <= {inline_bytes:d} then {column} end as {column}, {size} as {SIZE}"


def fitting(sizes: Sequence[int]) -> int:
    """Return how many contents of these sizes fit into a page; at least one."""
    given = 0
    for number, size in enumerate(sizes):
        given += size
        if PAGE_BYTES < given != size:
            return number
    return len(sizes)


class CutPage(Struct, Generic[T], frozen=True):
    """A page of a list. It is cut if what was asked for did not fit."""

    items: list[T]
    is_cut: bool = False


def whole_rows(tx: Tx, table: str, sized: Sequence[Row]) -> CutPage[Row]:
    """Return the whole rows that fit into a page, from rows of `id` and SIZE: others are never read."""
    wanted = [row["id"] for row in sized[: fitting([row[SIZE] for row in sized])]]
    rows = {row["id"]: row for row in all_of(tx, f"select * from {table} where :wanted", "id", wanted)}
    return CutPage([rows[each] for each in wanted], is_cut=len(wanted) < len(sized))


def count_up_to(tx: Tx, most: int, source: str, **params: object) -> int:
    """Counts rows of a table with conditions, up to `most`."""
    some = f"select 1 from {source} limit :most"
    return count(tx, f"select count(*) as number from ({some}) as counted", most=most, **params)


def rows_of(
    tx: Tx, source: str, span: Span, at: str = "created_at", id: str = "id", **params: object
) -> list[Row]:
    """Return the rows of a span.

    `source` ends in its conditions; `at` and `id` are the columns that order it.
    """
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


def newest(
    tx: Tx, table: str, limit: int, offset: int, since: int | None, until: int | None, **equal: object
) -> tuple[list[Row], int]:
    """Return the newest rows with these values, None for any.

    The total counts at most a thousand beyond the page.
    """
    given = {name: value for name, value in equal.items() if value is not None}
    moments = {"since": ("created_at >= :since", since), "until": ("created_at < :until", until)}
    bounds = {name: bound for name, (_, bound) in moments.items() if bound is not None}
    wanted = " and ".join([f"{name} = :{name}" for name in given] + [moments[name][0] for name in bounds])
    given |= bounds
    rows = tx.all(
        f"select * from {table} where {wanted} order by created_at desc, id desc limit :limit offset :offset",
        limit=limit,
        offset=offset,
        **given,
    )
    most = offset + limit + COUNTED_BEYOND_PAGE
    return rows, count_up_to(tx, most, f"{table} where {wanted}", **given)
