"""Lists of the messages of an inbox, newest first, and how many there are."""

from postroom.errors import no_such
from postroom.mailbox import messages
from postroom.mailbox.messages import BLOCKED, INBOUND, JUNK, OUTBOUND, TRASH, Slice
from postroom.storage.database import Tx, literal

# What is not judged yet is in no list.
_BLOCKED_AND_JUDGED = (
    "inbox_id = :inbox_id and direction = 'blocked' and is_junk = 0 and is_trashed = 0"
    " and not exists (select 1 from examinations where message_id = messages.id)"
)
_IN_JUNK = "inbox_id = :inbox_id and is_junk = 1 and is_trashed = 0"
ASIDE = {BLOCKED: _BLOCKED_AND_JUDGED, JUNK: _IN_JUNK}


def list_of_inbox(
    tx: Tx, inbox_id: str, direction: str | None, limit: int, offset: int, including: str | None = None
) -> tuple[Slice, int]:
    """List messages, newest first. `including` adds what was blocked, or what is in Junk or in Trash."""
    of_direction = "" if direction is None else f" and direction = {literal(direction)}"
    of_list = f"inbox_id = :inbox_id and {f'is_trashed = 0{of_direction}' if direction else messages.LISTED}"
    source = f"select {messages.listed_columns(limit)} from messages where {of_list}"
    if including == TRASH:
        trashed = f"inbox_id = :inbox_id and is_trashed = 1{of_direction}"
        source = _both(of_list, trashed, f"{messages.listed_columns(limit)}, created_at")
    elif including in ASIDE and direction != OUTBOUND:
        source = _both(of_list, ASIDE[including], f"{messages.listed_columns(limit)}, created_at")
    rows = tx.tuples(
        f"{source} order by created_at desc, id desc limit :limit offset :offset",
        inbox_id=inbox_id,
        limit=limit,
        offset=offset,
        **({"most": limit + offset} if ":most" in source else {}),
    )
    return messages.fitting(tx, rows), _total(tx, inbox_id, direction, including)


def _both(of_list: str, of_others: str, columns: str) -> str:
    """Return the SQL of two lists, each read through its own index up to the page's end."""
    newest = "order by created_at desc, id desc limit :most"
    return (
        f"select * from (select * from (select {columns} from messages where {of_list} {newest}) as listed"
        f" union all select * from (select {columns} from messages where {of_others} {newest}) as others)"
        " as both_lists"
    )


def _total(tx: Tx, inbox_id: str, direction: str | None, including: str | None) -> int:
    row = tx.one(
        "select inbound_count, outbound_count, blocked_count, junk_count from inboxes where id = :i",
        i=inbox_id,
    )
    if row is None:
        raise no_such("inbox")
    counts = {INBOUND: row["inbound_count"], OUTBOUND: row["outbound_count"]}
    if including == BLOCKED:
        counts[INBOUND] += row["blocked_count"]
    if including == JUNK:
        counts[INBOUND] += row["junk_count"]
    if including == TRASH:
        for each in tx.all(
            "select direction, count(*) as messages from messages where inbox_id = :id and is_trashed = 1"
            " group by direction",
            id=inbox_id,
        ):
            counts[each["direction"]] = counts.get(each["direction"], 0) + each["messages"]
    return int(sum(counts.values()) if direction is None else counts[direction])
